package gate

import (
	"math"
	"time"
)

const (
	// start is how many requests go out at once before anything is known of the endpoint.
	start = 8
	// blind is when the limit first doubles without a reply: a refusal comes at once, and a reply may take minutes.
	blind = 500 * time.Millisecond
	// fewest is the least number of requests in an average.
	fewest = 8
	// fixed is the overhead of each request, as the number of tokens that would take as long.
	fixed = 20
	// least is the smallest limit: less than one request at a time is a pause after each.
	least = 1.0 / 32
	// elastic is the least share of a rise of the limit by which the throughput must rise, for the new limit to stay.
	elastic = 0.12
)

// limit is how many requests may be in flight at an endpoint. What the endpoint takes is unknown and changes, so limit tries:
// it falls when more requests are refused than by chance, and when fewer requests give the same throughput; it rises by
// trials at first, and along a curve after a refusal. Requests are numbered in the order in which they are sent.
type limit struct {
	low, high, value float64

	admitted int // number of the last request
	fresh    int // number of the last request before the limit was set: later ones were sent under this limit

	// Averages under this limit, from rounds: samples that follow each other.
	round         sample
	rounds        int     // rounds that have ended since the limit was set
	early         sample  // the very first replies
	latency, work float64 // seconds and tokens of a good reply; from early until the first round has ended
	quickest      float64 // the least slowness so far
	measured      bool    // a round has ended
	gap           float64 // seconds between requests, on average
	sent          time.Time

	// Until the first reply: when the limit last doubled, and how long after that it doubles again.
	doubled time.Time
	blind   time.Duration

	anchor   anchor
	trial    trial
	refusals refusals
}

// anchor is the last limit whose throughput justified it, with latency and work of requests under it.
type anchor struct{ limit, latency, work float64 }

func newLimit(low, high float64) limit {
	l := limit{low: low, high: high, blind: blind, refusals: newRefusals()}
	l.trial.step, l.trial.flat = 1, true
	l.set(start)
	return l
}

// allowed is the limit, or the lower one of a trial downwards.
func (l *limit) allowed() float64 {
	if t := &l.trial; t.on && t.down {
		return t.to
	}
	return l.value
}

// places is how many requests may be in flight.
func (l *limit) places() int { return int(max(math.Ceil(l.allowed()-1e-9), 1)) }

// rate is how many requests may be sent each second: the throughput of that many places, and a quarter more, so that places do
// not stay empty by chance. It helps with servers that limit requests a second and not requests in flight.
func (l *limit) rate() float64 {
	value := l.allowed()
	if l.latency == 0 || value >= l.high {
		return math.Inf(1)
	}
	return 1.25 * value / l.latency
}

// burst is how many requests may be sent at the same moment.
func (l *limit) burst() int { return int(max(l.value/4, 1)) }

// used is how many places are in use, or would be if no request were refused.
func (l *limit) used() float64 {
	if l.gap == 0 || l.latency == 0 {
		return l.value
	}
	return min(l.latency/l.gap, l.value)
}

// slowness is the time per token.
func slowness(latency, work float64) float64 { return latency / (work + fixed) }

func (l *limit) slowness() float64 { return slowness(l.latency, l.work) }

// set changes the limit.
func (l *limit) set(value float64) {
	l.value, l.fresh, l.rounds = min(max(value, l.low), l.high), l.admitted, 0
	l.begin()
}

// begin starts a round.
func (l *limit) begin() {
	l.round = sample{from: l.admitted, most: int(min(max(l.value, 4*fewest), 8*fewest))}
}

// send counts a request and numbers its pass. crowded says that it takes the last place, or that more requests wait.
func (l *limit) send(p *Pass, now time.Time, crowded bool) {
	l.admitted++
	p.number = l.admitted
	if !l.sent.IsZero() {
		l.gap += (now.Sub(l.sent).Seconds() - l.gap) / max(2*fewest, l.value)
	}
	l.sent = now
	l.refusals.send(p, now)
	if l.trial.send(p, now, crowded); !p.trial && !l.round.full() {
		p.round = true
		l.round.send(now)
	}
}

// learn takes the result of a request. standing is how many other requests are in flight.
func (l *limit) learn(p *Pass, r Result, standing int, now time.Time) {
	l.trial.learn(p, r)
	if f := &l.refusals; p.proof && p.number > f.proof.from {
		f.proof.learn(r)
	}
	if p.round && p.number > l.round.from {
		l.round.learn(r)
	}
	switch r.Kind {
	case OK:
		if l.early.good < fewest {
			l.early.learn(r)
			if !l.measured {
				l.latency, l.work = l.early.means()
			}
			l.quickest = l.early.slowness()
		}
		l.refusals.answered(l, now)
	case Limited, Busy, Slow:
		if l.early.good == 0 { // the limit has grown without a reply
			if l.refusals.early++; 4*l.refusals.early >= l.admitted-l.fresh { // too many refusals for chance
				l.refusals.last = p.number
				l.set(min(l.value, float64(max(standing, 1))))
			}
		} else if !r.Requests.spent() && !r.Tokens.spent() { // otherwise budget slows requests down
			l.refusals.refused(l, p)
		}
	}
}

// judge adjusts the limit to the requests that have ended. dispatch calls it.
func (l *limit) judge(now time.Time) {
	l.trial.judge(l, now)
	l.refusals.prove(l, now)
	if l.trial.on && !l.trial.down {
		return // the trial may make replies slow
	}
	takes := l.latency
	if a := l.anchor; a.limit > 0 { // more requests may make latency grow in proportion
		takes = max(takes, a.latency*l.value/a.limit)
	}
	over, late := l.round.over(now, takes)
	if !l.measured { // the first replies to come back are the quick ones, so wait for all
		over, late = l.round.full() && l.round.good+l.round.refused == l.round.sent, false
	}
	if late && l.value > l.anchor.limit && l.anchor.limit > 0 {
		l.slowed()
		return
	}
	if !over {
		return
	}
	if l.round.good > 0 {
		l.measured = true
		l.rounds++
		l.latency, l.work = l.round.means()
		l.quickest = min(l.quickest, l.slowness())
		l.verify()
	}
	l.begin()
}

// verify compares the throughput with that under the anchor.
func (l *limit) verify() {
	a := &l.anchor
	noise := 1 / math.Sqrt(float64(l.round.good))
	if grown := l.value / a.limit; a.limit > 0 && grown > 1.1 {
		if grown*slowness(a.latency, a.work)/l.slowness() < 1-noise+elastic*(1-1/grown) {
			l.slowed()
			return
		}
		if grown < 1.25 && l.trial.base != a.limit { // small steps are compared together: noise hides a single one
			return
		}
		if l.trial.bad == 0 { // otherwise the limit is on the way back to one that was too high
			l.trial.slow = 0
		}
	}
	*a = anchor{l.value, l.latency, l.work}
}

// slowed goes back to the anchor: the additional requests slow the server down more than they deliver.
func (l *limit) slowed() {
	l.trial.late(l, l.value)
	l.latency, l.work = l.anchor.latency, l.anchor.work
	l.set(l.anchor.limit)
	l.refusals.curve = curve{}
}

// more reports whether a request may go beyond the limit, and if not, when to look again. wait is the time until the pace
// allows another request.
func (l *limit) more(now time.Time, inFlight int, wait time.Duration) (time.Duration, bool) {
	if l.early.good == 0 && l.refusals.last == 0 { // no reply and no refusal so far
		if since := now.Sub(l.doubled); since < l.blind {
			return l.blind - since, false
		}
		l.doubled, l.blind = now, 2*l.blind
		l.set(2 * l.value)
		return l.blind, inFlight < l.places()
	}
	if c := &l.refusals.curve; c.level > 0 && !l.trial.on {
		l.value = min(max(c.at(now, l.latency*max(1, 2*fewest/l.value)), l.value), l.high)
		if wait == 0 && inFlight < l.places() {
			return 0, true
		}
		if look := time.Duration(l.latency / 8 * float64(time.Second)); wait == 0 || look < wait {
			wait = max(look, time.Millisecond)
		}
		return wait, false
	}
	return l.trial.more(l, now, wait)
}
