package gate

import (
	"math"
	"time"
)

const (
	// smallest is the least step of a trial upwards, as a share of the limit; it is one request at least.
	smallest = 1.0 / 16
	// lower is what a trial downwards leaves of the limit.
	lower = 0.75
	// A trial sends handful requests, and the next ones when those have not been refused after a pause.
	handful, pause = 32, 20 * time.Millisecond
	// suspect is how many times its least slowness a server must reach for a trial downwards.
	suspect = 1.6
	// patient is how long a trial downwards waits for its requests, in latencies.
	patient = 100
	// lull is how many requests for each place lie between a trial downwards that failed and the next one.
	lull = 16
)

// trial finds out whether an endpoint takes more than the limit, or does as well with less.
//
// Upwards, some requests are sent beyond the limit, once, and the limit is raised when most of them came back well: neither
// refused nor much later than others. So a trial costs no more than those requests, even where one request too many makes
// all of them slow. Downwards, the limit is lower for a while.
type trial struct {
	sample
	on, down bool
	base, to float64 // the limit, and the one that is tried
	crowded  int     // how many of its requests took the last place
	share    float64 // the share of refusals to compare with, in a trial about refusals; 0 in one about slowness
	pending  int     // requests in flight beyond the limit, of this trial and of earlier ones

	step float64 // by which share the next trial upwards raises the limit
	bad  float64 // a limit that made the server slow; 0 when a higher limit has held since
	flat bool    // the last trial upwards did not make the server slower
	slow int     // trials in a row that made the server slow
	up   int     // number of the request from which the next trial upwards is due
	calm int     // number of the request from which the next trial downwards is due
}

// begin starts a trial.
func (t *trial) begin(l *limit, down bool, base, to, share float64, most int) {
	from := l.admitted
	if down {
		from += int(to) // earlier requests still share the server with those in flight now
	}
	t.sample = sample{from: from, most: max(most, 1)}
	t.on, t.down, t.base, t.to, t.share, t.crowded = true, down, base, to, share, 0
}

// send makes the request part of the trial if it is beyond the limit, or if the trial is one downwards.
func (t *trial) send(p *Pass, now time.Time, crowded bool) {
	if !t.on || t.full() || p.number <= t.from || !t.down && !p.beyond {
		return
	}
	p.trial, p.down = true, t.down
	t.sample.send(now)
	if crowded {
		t.crowded++
	}
	if !t.down {
		t.pending++
	}
}

// learn takes the result of a request.
func (t *trial) learn(p *Pass, r Result) {
	if !p.trial {
		return
	}
	if !p.down {
		t.pending--
	}
	if t.on && p.number > t.from {
		t.sample.learn(r)
	}
}

// more starts a trial upwards if one is due. It returns what limit.more does.
func (t *trial) more(l *limit, now time.Time, wait time.Duration) (time.Duration, bool) {
	if !t.on && l.early.good >= fewest && l.value < l.high && l.admitted >= t.up && (l.rounds > 0 || t.flat && l.slowness() < suspect*l.quickest && float64(l.round.sent) >= l.value) {
		to := l.value * (1 + t.step)
		if t.bad > 0 {
			to = max(min(to, (l.value+t.bad)/2), l.value*(1+smallest))
		}
		to = min(to, l.high)
		t.begin(l, false, l.value, to, 0, int(to-float64(l.places())))
	}
	if t.on && !t.down {
		if next := t.at.Add(pause).Sub(now); t.sent%handful == 0 && t.sent > 0 && next > 0 {
			return next, false
		}
		if !t.full() {
			return 0, true
		}
		if late := time.Duration(2*l.latency*float64(time.Second)) - now.Sub(t.at); wait == 0 || late < wait {
			wait = max(late, time.Millisecond)
		}
	}
	return wait, false
}

// relieve starts a trial downwards if the server is slow.
func (t *trial) relieve(l *limit) {
	base := l.used()
	if t.on || !l.measured || l.rounds == 0 || l.admitted < t.calm || base < max(2, l.low) {
		return
	}
	slow := l.slowness() / l.quickest
	if slow < suspect {
		return
	}
	to := base * lower
	if slow > suspect*suspect {
		to *= lower
	}
	to = max(to, l.low)
	t.begin(l, true, base, to, 0, int(max(4*fewest, to)))
}

// fewer starts a trial downwards, which finds out whether a smaller share than this one is refused then.
func (t *trial) fewer(l *limit, share float64) {
	base := l.used()
	t.begin(l, true, base, max(base*(1-share)*lower, l.low), share, int(min(max(2*several/share, 20), 400)))
}

// judge ends a trial when enough is known.
func (t *trial) judge(l *limit, now time.Time) {
	if !t.on {
		return
	}
	takes := l.latency
	if !t.down { // more requests may make latency grow in proportion
		takes *= t.to / t.base
	}
	over, late := t.over(now, takes)
	switch {
	case t.down:
		enough := t.share > 0 && t.refused >= several && t.good+t.refused >= 2*fewest
		few := !t.full() && now.Sub(t.began).Seconds() < patient*l.latency // too few requests have come so far
		if t.on = (few || !over && !late) && !enough; t.on {
			return
		}
		if t.share > 0 {
			l.refusals.judge(l)
		} else {
			t.relieved(l)
		}
	case float64(t.refused) >= (0.5+l.refusals.random)*float64(t.most), t.refused > handful/2 && 2*t.refused > t.sent:
		t.on = false
		l.set(t.base + float64(t.good))
		l.refusals.found(newCurve(l.value, l.value))
	case late:
		t.late(l, t.to)
		l.set(l.value) // begins a new round: the trial made this one slow
	case over:
		t.passed(l)
	}
}

// passed ends a trial upwards most of whose requests came back, and raises the limit.
func (t *trial) passed(l *limit) {
	t.on = false
	to := t.base + (t.to-t.base)*float64(t.good)/float64(t.most)
	worth := to / t.base * (1 - elastic*(1-t.base/to))
	if t.good == 0 {
		return
	}
	slower := t.slowness() / l.slowness()
	if t.flat = slower < 1.1; slower > worth+1/math.Sqrt(float64(t.good)) {
		t.late(l, t.to)
		return
	}
	if to >= t.bad {
		t.bad = 0
	}
	l.set(to)
	l.refusals.outgrown(l)
	t.step = min(2*t.step, 1)
}

// late ends a trial that made the server slow. The wait before the next one doubles with each in a row, up to the fifth.
func (t *trial) late(l *limit, bad float64) {
	t.on, t.bad = false, bad
	t.step = max(t.step/2, smallest)
	t.slow = min(t.slow+1, 5)
	t.up = l.admitted + int(math.Exp2(float64(t.slow))*max(l.value, 1))
}

// relieved ends a trial downwards.
func (t *trial) relieved(l *limit) {
	if t.good == 0 {
		return
	}
	if t.to/t.base*l.slowness()/t.slowness() < 1 {
		t.calm = l.admitted + int(lull*max(l.value, 1))
		l.quickest = max(l.quickest, l.slowness()/(0.95*suspect)) // fewer requests are no quicker: this slowness is normal now
		return
	}
	t.bad, t.step = l.value, smallest
	t.up = l.admitted + int(lull*max(t.to, 1))
	l.latency, l.work = t.means()
	l.set(t.to)
	l.anchor = anchor{t.to, l.latency, l.work}
	l.refusals.curve = curve{}
}
