package gate

import (
	"math"
	"time"
)

const (
	slowest = 1.0 / 60 // requests each second, however often the server refuses
	// smooth is the time's worth of permissions that may be used at once; timers are no more exact than that.
	smooth = 50 * time.Millisecond
	// saved is the time's worth of permissions that a pause may save up, where the server's own bucket fills meanwhile.
	saved = 2 * time.Second
)

// pace bounds the requests of each second. Its rate is infinite until the server refuses for its sake.
type pace struct {
	rate    curve
	allowed float64 // permissions now
	budgets float64 // requests each second that the server's headers leave
	until   time.Time
	savings float64 // share of saved that pauses may save up; less when a server refused what was saved

	// Requests that were sent and not refused, by time: for what the server takes while it refuses.
	good     [64]int
	goodFrom time.Time // of good[0]
}

const span = 250 * time.Millisecond // of an entry of good

func newPace(now time.Time) pace {
	return pace{rate: curve{value: math.Inf(1), low: slowest, high: math.Inf(1)}, allowed: 1, budgets: math.Inf(1), savings: 1, goodFrom: now}
}

// now is the rate that holds at this moment.
func (p *pace) now() float64 { return min(p.rate.value, p.budgets) }

// earn adds the permissions of the time since then.
func (p *pace) earn(now, then time.Time) {
	rate := p.now()
	if math.IsInf(rate, 1) {
		p.allowed = max(p.allowed, 1)
		return
	}
	depth := max(1, rate*smooth.Seconds())
	if p.until.After(then) && p.rate.value < p.budgets { // headers tell what the server has saved up
		depth = max(depth, p.savings*min(rate, p.taken(now))*saved.Seconds())
	}
	p.allowed = min(p.allowed+rate*now.Sub(then).Seconds(), depth)
}

// wait is the time until the next permission.
func (p *pace) wait() time.Duration {
	rate := p.now()
	if p.allowed >= 1-1e-9 || math.IsInf(rate, 1) {
		return 0
	}
	// The rate itself may change meanwhile, as what is left of a budget does.
	const longest, shortest = 0.25, 0.0001
	return time.Duration(max(shortest, min(longest, (1-p.allowed)/rate)) * float64(time.Second))
}

// take uses a permission and tells whether it is one that a pause had saved up.
func (p *pace) take() (saved bool) {
	rate := p.now()
	if math.IsInf(rate, 1) {
		return false
	}
	saved = p.allowed > max(1, rate*smooth.Seconds())+1e-6
	p.allowed--
	return saved
}

func (p *pace) giveBack() {
	if !math.IsInf(p.now(), 1) {
		p.allowed++
	}
}

// pause closes the gate for as long as the server wished.
func (p *pace) pause(until time.Time) {
	if until.After(p.until) {
		p.until = until
	}
}

// sent counts a request; forget takes it back.
func (p *pace) sent(now time.Time) { p.good[p.entry(now)]++ }

// forget takes a request out that was refused after all.
func (p *pace) forget(sent time.Time) {
	if at := sent.Sub(p.goodFrom); at >= 0 && int(at/span) < len(p.good) {
		p.good[at/span]--
	}
}

// entry is now's place in good, after what is too old was dropped.
func (p *pace) entry(now time.Time) int {
	at := max(0, int(now.Sub(p.goodFrom)/span))
	if last := len(p.good) - 1; at > last {
		drop := at - last
		if drop > last {
			clear(p.good[:])
		} else {
			copy(p.good[:], p.good[drop:])
			clear(p.good[len(p.good)-drop:])
		}
		p.goodFrom = p.goodFrom.Add(time.Duration(drop) * span)
		at = last
	}
	return at
}

// taken is how many requests the server took each second: the best of the last seconds, so that a pause among them does not
// count against the server.
func (p *pace) taken(now time.Time) float64 {
	last := p.entry(now)
	best, sum := 0.0, 0
	for i := last; i >= 0; i-- {
		sum += p.good[i]
		if n := last - i + 1; n >= int(time.Second/span) {
			best = max(best, float64(sum)/(float64(n)*span.Seconds()))
		}
	}
	if last+1 < int(time.Second/span) { // the gate is younger than a second
		best = float64(sum) / max(now.Sub(p.goodFrom), span/4).Seconds()
	}
	return best
}

// refused lowers the rate. again says that this refusal follows upon another.
func (p *pace) refused(now time.Time, again bool) {
	p.allowed = min(p.allowed, 0) // the server has nothing left either
	taken := max(p.taken(now), 1)
	switch {
	case math.IsInf(p.rate.value, 1):
		p.rate.settle(taken*softly, 0)
		p.rate.target = math.Inf(1) // a guess: doubles until the next refusal
	case again:
		// Not far below what the server takes all the while.
		p.rate.cut(min(softly, max(hardly, taken*softly/p.rate.value)))
	default:
		p.rate.cut(softly)
	}
}
