package gate

import (
	"math"
	"time"
)

const (
	// quietly is the least time after a cut in which another refusal says that the cut was too small.
	quietly = 2 * time.Second
	// hasty is the least time between two cuts; a fast server would be cut to nothing before a cut can show its effect.
	hasty = 100 * time.Millisecond
	// broken is how many requests in a row end without an answer before that is no accident.
	broken = 3
	// An endpoint that is broken is tried again after firstProbe, and then after up to lastProbe.
	firstProbe, lastProbe = time.Second, 30 * time.Second
)

// trouble remembers the last cut. Requests that were under way then say nothing new about it.
type trouble struct {
	last  int       // requests admitted by the time of the last cut
	since time.Time // the last cut
	until time.Time // another refusal before then says that the cut was too small

	// When a request last went well, and what was allowed when one did that was sent after the last cut.
	good        time.Time
	limit, rate float64

	failures int // in a row
	probe    time.Time
	pause    time.Duration
}

// begin notes a cut and says whether it follows upon another.
func (g *Gate) begin(now time.Time) (again bool) {
	t := &g.trouble
	again = now.Before(t.until) || t.good.Before(t.since)
	t.last, t.since = g.admitted, now
	from := now
	if g.pace.until.After(now) {
		from = g.pace.until
	}
	t.until = from.Add(g.calm())
	if !again {
		g.pace.savings = min(1, 1.1*g.pace.savings)
	}
	return again
}

// calm is how long a cut takes to show its effect.
func (g *Gate) calm() time.Duration { return max(quietly, 3*g.limit.round) }

// refused takes a refusal. What it is due to shows in what the request had waited for and how many were in flight.
func (g *Gate) refused(p *Pass, r Result, now time.Time) {
	g.pace.forget(p.sent)
	g.limit.stood(g.inFlight - (g.admitted - p.number))
	pause := hasty
	if r.Kind == Busy { // with the load still there, every request until the next cut is refused
		pause /= 2
	}
	stale := p.number <= g.trouble.last || now.Sub(g.trouble.since) < pause
	if r.RetryAfter == 0 && g.look(now) { // a server that names a time means us
		return
	}
	if r.RetryAfter > 0 && (!stale || now.Before(g.pace.until)) {
		g.pace.pause(now.Add(r.RetryAfter))
	}
	if stale {
		if p.number <= g.trouble.last && p.bound != byRate && g.limit.unproven(p.inFlight) {
			g.limit.late(p.inFlight)
		}
		return
	}
	again := g.begin(now)
	switch {
	case !again && (r.Requests.spent() || r.Tokens.spent()):
		// The headers say why, and the budget follows them.
	case p.saved:
		g.pace.savings /= 2
		g.pace.allowed = min(g.pace.allowed, 0)
	case p.bound == byRate || p.bound == byBudget:
		g.pace.refused(now, again)
	case r.Kind == Busy || g.limit.unproven(p.inFlight):
		g.limit.refused(p.inFlight, again)
	default:
		if math.IsInf(g.pace.rate.value, 1) {
			// What the limit was cut for so far was the rate's doing.
			g.limit.target = g.limit.high
		}
		g.pace.refused(now, again)
	}
}

// answered takes a good reply: the first one after an outage lets the limits double up to about what they were.
func (g *Gate) answered(p *Pass, now time.Time) {
	t := &g.trouble
	t.failures, t.pause = 0, 0
	g.down.Store(false)
	silent := now.Sub(t.good)
	t.good = now
	if p.number <= t.last {
		return
	}
	if silent > g.calm() {
		g.limit.recover(t.limit)
		g.pace.rate.recover(t.rate)
	}
	t.limit, t.rate = g.limit.value, g.pace.rate.value
}

// failed takes a request without an answer.
func (g *Gate) failed(p *Pass, now time.Time) {
	t := &g.trouble
	if t.failures++; t.failures < broken {
		return
	}
	g.down.Store(true)
	if t.pause == 0 {
		t.pause, t.probe = firstProbe, now.Add(firstProbe)
	}
	if p.number > t.last {
		g.begin(now)
		g.limit.cut(hardly)
	}
	if g.elsewhere != nil && g.elsewhere() {
		g.queue.clear()
	}
}
