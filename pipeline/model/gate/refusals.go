package gate

import (
	"math"
	"time"
)

const (
	// common is the share of requests that is first assumed to be refused at random, whatever the load; rare is the least such
	// share, and extra is what load adds to it.
	common, rare, extra = 0.02, 0.002, 0.05
	// sure is the logarithm of the likelihood ratio from which on load counts as the reason for refusals.
	sure = 2.5
	// leastCut and mostCut are the smallest and the largest share of the limit that a cut takes.
	leastCut, mostCut = 0.03, 0.25
	// many is how many refusals in spite of cuts begin a trial of fewer requests, and several is how many of that trial's
	// requests are expected to be refused if load is not the reason.
	many, several = 5, 3
	// quiet is how many requests for each place without a refusal show that the cuts have helped.
	quiet = 4
	// notable is the least share of refusals that is worth such a trial.
	notable = 0.01
	// sooner and later are the least and the largest distance between two trials once load was found not to be the reason, in
	// multiples of a trial's requests.
	sooner, later = 8, 256
)

// refusals lowers the limit when more requests are refused than at random. It finds out the random share by trials: if a
// smaller share is refused when fewer requests are sent, load is the reason.
type refusals struct {
	early   int     // refusals before the first reply
	all     int     // refusals outside trials
	limited bool    // a curve has begun
	cut     int     // number of the last request before the last cut
	last    int     // number of the last request that was refused
	random  float64 // estimated share of requests that are refused at random
	verdict float64 // upper bound of random, as it was measured: random follows refusals, and load would raise it
	score   float64 // of the test whether more are refused than at random
	curve   curve   // by which the limit rises again

	// The most places that good replies used lately. A cut leaves at least a sixteenth of them, as refusals for other reasons
	// would otherwise stop all requests.
	best float64
	gap  float64 // seconds between good replies, on average
	good time.Time

	// The cuts since load was first suspected.
	limit float64 // before the first cut; 0 when load is not suspected
	from  int     // number of the last request before that
	count int     // refusals since then
	fewer float64 // throughput of the trial that found load not to be the reason; 0 once proof confirms the finding
	proof sample  // the first requests after that finding

	// A finding that load is not the reason is checked again, less often each time.
	again    bool // the trial of fewer requests is such a check
	due      int  // number of the request from which the next check is due; 0 without a finding
	distance int  // to the next check, in multiples of a trial's requests
}

func newRefusals() refusals { return refusals{random: common, verdict: common} }

// outgrown is called when a trial has raised the limit: as the server takes more now, earlier refusals were random.
func (f *refusals) outgrown(l *limit) {
	const prior = 1
	if f.limited {
		return
	}
	f.verdict = max(rare, (float64(f.all)+prior)/(float64(l.admitted)+prior/common))
	f.random, f.score = f.verdict, 0
}

// send counts a request as accepted; refused corrects that.
func (f *refusals) send(p *Pass, now time.Time) {
	if p.proof = f.fewer > 0 && !f.proof.full(); p.proof {
		f.proof.send(now)
	}
	f.score = max(0, f.score+math.Log((1-f.random-extra)/(1-f.random)))
	f.random = max(rare, f.random*(1-1.0/1000))
}

// answered takes a good reply, and updates best.
func (f *refusals) answered(l *limit, now time.Time) {
	const half = 30 * time.Second // half-life of best
	since := now.Sub(f.good)
	if !f.good.IsZero() {
		f.gap += (since.Seconds() - f.gap) / (2 * fewest)
		f.best *= math.Exp2(-float64(since) / float64(half))
		if f.gap > 0 && l.early.good >= fewest {
			f.best = max(f.best, min(l.latency/f.gap, l.value))
		}
	}
	f.good = now
}

// refused takes a refusal.
func (f *refusals) refused(l *limit, p *Pass) {
	if p.trial || l.trial.pending > 0 || l.trial.on && l.trial.down { // the trial may have caused it, or looks into it
		return
	}
	f.all++
	if f.random > rare {
		f.random = min(f.random+1.0/1000, f.verdict)
	}
	if p.number <= l.fresh {
		return
	}
	f.count++
	if float64(p.number-f.last) > quiet*max(l.value, fewest) || l.value >= plateau*f.limit { // the cuts have helped
		f.limit = 0
	}
	f.last = p.number
	if f.due > 0 && p.number >= f.due && f.random > notable && !l.trial.on {
		f.again = true
		l.trial.fewer(l, f.random)
		return
	}
	if f.score += math.Log((f.random + extra) / f.random); f.score < sure {
		return
	}
	f.score = sure / 2
	since := p.number - f.cut
	if f.limit == 0 {
		since = int(l.value)
		f.limit, f.from, f.count = l.value, p.number-since-1, 1
	}
	share := float64(f.count) / float64(l.admitted-f.from)
	// Load is the likely reason for many refusals, until the cuts are deeper than the share of refusals explains.
	if unlikely := share < 1-lower || l.value < lower*(1-share)*f.limit; f.count >= many && share > notable && unlikely && !l.trial.on {
		f.again = false
		l.trial.fewer(l, share)
		return
	}
	// If one request in n is refused, the limit is too high by about 1/n.
	cut := min(max(0.5/float64(max(since, 1)), leastCut), mostCut)
	f.lower(l, max(l.value*(1-cut), f.best/16))
}

// lower sets the limit to a value below it.
func (f *refusals) lower(l *limit, value float64) {
	value = min(value, l.value)
	f.found(newCurve(l.value, value))
	l.set(value)
	f.cut = l.admitted
}

// found begins a curve.
func (f *refusals) found(c curve) {
	if !f.limited && f.verdict == common { // outgrown has not changed the first assumption
		f.random, f.verdict = rare, rare
	}
	f.curve, f.limited = c, true
}

// judge ends a trial of fewer requests.
func (f *refusals) judge(l *limit) {
	t := &l.trial
	was, again := f.limit, f.again
	f.limit, f.score, f.again = 0, 0, false
	expected := t.share * float64(t.sent)
	few := float64(t.refused) < max(2, expected/4)
	switch unused := 4*t.crowded < 3*t.sent; { // the lower limit held back too little
	case again && few && !unused:
		f.mistaken(l)
		return
	case again:
	case few && !unused: // load is the reason: the share that was not refused fits
		f.lower(l, t.base*(1-t.share))
		return
	case unused, few, tooMany(t.refused, expected): // load may still be the reason
		if float64(t.refused) > expected { // the lower limit was too high as well
			f.lower(l, t.to)
		}
		return
	default:
		f.random = min(float64(f.count+t.refused)/float64(l.admitted-f.from), 0.5)
		f.verdict, f.curve, f.fewer = f.random, curve{}, t.delivered()
		t.step, t.bad = 1, 0
		l.set(max(was, l.value))
		f.proof = sample{from: l.admitted, most: l.round.most}
	}
	f.distance = min(max(2*f.distance, sooner), later)
	f.due = l.admitted + f.distance*t.sent
}

// tooMany reports whether more requests were refused than chance explains.
func tooMany(refused int, expected float64) bool { return float64(refused) > 2+2*expected }

// prove looks at the first requests after load was found not to be the reason: the higher limit must give a higher
// throughput, and no larger share of refusals.
func (f *refusals) prove(l *limit, now time.Time) {
	if over, late := f.proof.over(now, l.latency); f.fewer == 0 || !over && !late {
		return
	}
	if f.proof.delivered() < 1.1*f.fewer || tooMany(f.proof.refused, f.verdict*float64(f.proof.sent)) {
		f.mistaken(l)
	}
	f.fewer = 0
}

// mistaken takes back the finding that load is not the reason.
func (f *refusals) mistaken(l *limit) {
	f.random, f.verdict, f.due, f.distance = rare, rare, 0, 0
	f.curve = newCurve(l.trial.to, l.trial.to)
	l.set(l.trial.to)
}

const (
	// steep makes a curve rise by an eighth in 9 rounds from its plateau, and double in 17.
	steep = 3e-4
	// plateau is where a curve stays longest, below where it was cut.
	plateau = 0.98
)

// curve rises as TCP CUBIC does (RFC 9438): quickly back to a plateau a little below the limit that was refused, slowly there,
// and faster and faster beyond. So it seldom exceeds a server's limit that stays, and soon notices when that limit rises.
type curve struct {
	level  float64 // the plateau; 0 without a curve
	rounds float64 // from the plateau; negative before it
	seen   time.Time
}

func newCurve(from, to float64) curve {
	level := max(from*plateau, to)
	return curve{level: level, rounds: -math.Cbrt((1 - to/level) / steep)}
}

// at is the value now. It counts the time since the last call, in which the limit held requests back, in rounds.
func (c *curve) at(now time.Time, round float64) float64 {
	if !c.seen.IsZero() {
		c.rounds += min(now.Sub(c.seen).Seconds()/round, 0.5) // in a longer pause the limit did not hold requests back
	}
	c.seen = now
	return c.level * (1 + steep*c.rounds*c.rounds*c.rounds)
}
