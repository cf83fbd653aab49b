package gate

import (
	"math"
	"time"
)

// Budget is what a server's headers say about one of its rate limits: Remaining of Limit are left, and the budget is full
// again after Reset. The zero value means that the headers say nothing.
type Budget struct {
	Limit, Remaining float64
	Reset            time.Duration
}

// spent says whether nothing is left.
func (b Budget) spent() bool { return b.Limit > 0 && b.Remaining < 1 }

// budget slows requests down when little is left. A server may refill its budget bit by bit or all at once: the rate falls
// with what is left, so that it settles at the refill rate in the first case and lasts until the reset in the second.
type budget struct {
	Budget
	cost   float64   // of a request, on average
	number int       // number of the request whose reply brought these headers; 0 without
	sent   time.Time // when that request was sent
	refill float64   // per second
}

// longestReset is the longest reset that budget waits for. With a later one, as of a day's budget, requests go on until the
// server refuses them.
const longestReset = 10 * time.Minute

// update takes the headers of the reply to a request. It ignores the headers of an older request than the last one.
func (b *budget) update(p *Pass, next Budget) {
	if !(next.Limit > 0) || next.Reset < 0 || next.Remaining < 0 || p.number < b.number {
		return
	}
	if next.Reset > longestReset {
		b.number = 0
		return
	}
	b.Budget, b.number, b.sent = next, p.number, p.sent
	used := max(next.Limit-next.Remaining, 0)
	// Headers hold whole numbers, so the refill rate is imprecise while little is used.
	if next.Reset > 0 && (b.refill == 0 || used >= next.Limit/4) {
		b.refill = used / next.Reset.Seconds()
	}
}

// rate is how many requests each second the budget allows now. admitted is the number of the last request.
func (b *budget) rate(now time.Time, admitted int) float64 {
	if b.number == 0 || b.refill <= 0 {
		return math.Inf(1)
	}
	elapsed := now.Sub(b.sent)
	if elapsed > b.Reset+time.Minute { // the headers are out of date
		return math.Inf(1)
	}
	left := min(b.Limit, b.Remaining+b.refill*elapsed.Seconds()-float64(admitted-b.number)*b.cost)
	reserve := min(max(b.refill, b.Limit/10), b.Limit/2)
	if left >= reserve {
		return math.Inf(1)
	}
	return b.refill / b.cost * max(left, 0) / reserve
}
