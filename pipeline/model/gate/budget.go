package gate

import (
	"math"
	"time"
)

// Budget is what a server's headers say of one of its limits: so many are left of Limit, and all of them are there
// again after Reset. The zero value says nothing.
type Budget struct {
	Limit, Remaining float64
	Reset            time.Duration
}

// spent says whether nothing is left.
func (b Budget) spent() bool { return b.Limit > 0 && b.Remaining < 1 }

// budget slows requests down when what is left runs low. A server may refill its budget bit by bit or all at once:
// the pace falls with what is left and meets the refill of the one, and reaches the end of the other at its reset.
type budget struct {
	Budget
	cost   float64   // of a request, on average
	number int       // of the request that was told
	sent   time.Time // when it was sent
	refill float64   // each second
}

// patientFor is the longest reset that is waited for in silence: that of a day's budget is for the refusal to tell.
const patientFor = 10 * time.Minute

// told takes what the reply to a request said. An older reply than the last one counts no more.
func (b *budget) told(p *Pass, told Budget) {
	if !(told.Limit > 0) || told.Reset < 0 || told.Remaining < 0 || p.number < b.number {
		return
	}
	if told.Reset > patientFor {
		b.number = 0
		return
	}
	b.Budget, b.number, b.sent = told, p.number, p.sent
	used := max(told.Limit-told.Remaining, 0)
	// As all is there in whole numbers, a small use says little.
	if told.Reset > 0 && (b.refill == 0 || used >= told.Limit/4) {
		b.refill = used / told.Reset.Seconds()
	}
}

// rate is how many requests each second the budget allows now. admitted is the number of the last request.
func (b *budget) rate(now time.Time, admitted int) float64 {
	if b.number == 0 || b.refill <= 0 {
		return math.Inf(1)
	}
	elapsed := now.Sub(b.sent)
	if elapsed > b.Reset+time.Minute { // the server has not told for long
		return math.Inf(1)
	}
	left := min(b.Limit, b.Remaining+b.refill*elapsed.Seconds()-float64(admitted-b.number)*b.cost)
	reserve := min(max(b.refill, b.Limit/10), b.Limit/2)
	if left >= reserve {
		return math.Inf(1)
	}
	return b.refill / b.cost * max(left, 0) / reserve
}
