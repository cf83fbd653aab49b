package gate

import "time"

// limit bounds the requests in flight.
type limit struct {
	curve
	round time.Duration // an average request's time
	speed speed
	least float64 // that the last cut may come to

	// The most that were in flight and not refused: in this epoch and in the one before it.
	proven, before int
	epoch          time.Time
}

const (
	shortRound = 500 * time.Millisecond // growing with every reply of a fast server would meet its limit too often
	epochs     = 4                      // rounds that an epoch lasts
)

func newLimit(floor, ceiling, start float64) limit {
	l := limit{curve: curve{low: floor, high: ceiling, target: ceiling}, round: shortRound}
	l.settle(start, start)
	return l
}

func (l *limit) allowed() int { return int(l.value + 1e-9) }

func (l *limit) age(passed time.Duration) {
	round := max(l.round, shortRound)
	if l.value < l.target {
		round = shortRound // a refusal comes at once, where a reply may take minutes
	}
	l.curve.age(passed.Seconds() / round.Seconds())
}

// answered counts a reply that went well. bottleneck says whether the limit was what held requests back.
func (l *limit) answered(now time.Time, inFlight int, bottleneck bool, latency time.Duration) {
	const weight = 0.1
	if latency > 0 {
		l.round += time.Duration(weight * float64(latency-l.round))
	}
	if now.Sub(l.epoch) > epochs*max(l.round, shortRound) {
		l.before, l.proven, l.epoch = l.proven, 0, now
	}
	l.proven = max(l.proven, inFlight)
	if bottleneck && l.value < l.target { // one more for each reply doubles it in a round
		value := min(l.value+1, l.target)
		l.settle(value, value)
	}
}

// unproven says whether the server has not lately taken so many at once.
func (l *limit) unproven(inFlight int) bool { return float64(inFlight) > l.taken() }

// stood counts requests that are still under way where younger ones have been refused already.
func (l *limit) stood(n int) { l.proven = max(l.proven, n) }

// refused cuts the limit: to one less than what was refused, as a server with a fixed number of places has just told
// how many it has, and by far more when that did not help.
func (l *limit) refused(inFlight int, again bool) {
	at := min(l.value, float64(inFlight))
	l.least = at * hardly
	if again {
		l.value = at
		l.cut(hardly)
		return
	}
	l.target = 0
	l.settle(max(at-1, min(l.taken(), l.value-1)), 0) // of two that are sent at once, the older one may be refused
}

// late takes another refusal of those that were under way at the last cut: the server may have refused younger ones
// first.
func (l *limit) late(inFlight int) {
	if value := max(float64(inFlight-1), l.taken(), l.least); l.least > 0 && value < l.value {
		l.settle(value, 0)
	}
}

// taken is how many the server has lately taken at once.
func (l *limit) taken() float64 { return float64(max(l.proven, l.before)) }
