// Package gate decides when a request may go to a model's endpoint.
//
// A Gate holds back what the endpoint would refuse: it finds out how many requests the endpoint takes at once and how
// many each second, and follows when that changes. Those that wait go in a fair order. A Set chooses among several
// endpoints of one model. Processors, which all gates share, hold back what this process itself has no time for.
package gate

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultStart is how many requests go out at once before anything is known of the endpoint.
const DefaultStart = 8

// Config says between which bounds a Gate may move.
type Config struct {
	Floor   int // requests in flight that are always allowed; 0 means 1
	Ceiling int // requests in flight, at most; 0 means no bound
	Start   int // requests in flight at first; 0 means DefaultStart
	Now     func() time.Time
	// Processors are what all gates of a process share; nil holds nothing back for their sake.
	Processors *Processors
}

// Ticket says who waits.
type Ticket struct {
	Episode string
	Turn    int       // an episode in progress goes before one that has not begun
	Since   time.Time // when it began to wait: the longest wait goes first
}

// Gate admits requests to one endpoint. It is safe for concurrent use.
type Gate struct {
	now  func() time.Time
	down atomic.Bool // the last requests got no answer; read without the lock by the other gates of a Set

	mu       sync.Mutex // guards what follows
	queue    queue
	inFlight int
	admitted int // requests so far
	limit    limit
	pace     pace
	requests budget
	tokens   budget
	trouble  trouble
	doubt    doubt
	// elsewhere says whether another endpoint would do, which those who wait here then go to. It takes no lock.
	elsewhere func() bool
	bound     bound // what the first in the queue waits for
	ticked    time.Time
	timer     *time.Timer // calls dispatch when the pace allows the next request

	processors *Processors
	held       bool // it waits for its turn at them, whose lock guards this
}

// bound is what holds the first in the queue back.
type bound int

const (
	free bound = iota
	byLimit
	byRate
	byBudget
	byPause
	byProcessors
)

// New makes a gate.
func New(cfg Config) *Gate {
	now := cfg.Now()
	floor := max(cfg.Floor, 1)
	ceiling := cfg.Ceiling
	if ceiling <= 0 {
		ceiling = math.MaxInt32
	}
	ceiling = max(ceiling, floor)
	start := cfg.Start
	if start <= 0 {
		start = DefaultStart
	}
	return &Gate{
		now: cfg.Now, ticked: now, processors: cfg.Processors,
		limit:  newLimit(float64(floor), float64(ceiling), float64(min(max(start, floor), ceiling))),
		pace:   newPace(now),
		tokens: budget{cost: 1}, requests: budget{cost: 1},
	}
}

// Pass is the permission for one request. Its holder calls Done exactly once.
type Pass struct {
	gate     *Gate
	sent     time.Time
	number   int   // of the request, from 1
	inFlight int   // with this one, when it was admitted
	bound    bound // what it had waited for
	saved    bool  // on a permission that a pause had saved up
}

// Acquire waits until the request may be sent. The error is the cause of the context's end, or errMoved.
func (g *Gate) Acquire(ctx context.Context, ticket Ticket) (*Pass, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	g.mu.Lock()
	w := &waiter{ticket: ticket, admit: make(chan *Pass, 1)}
	g.queue.push(w)
	g.dispatch()
	g.mu.Unlock()
	g.processors.poke()
	select {
	case pass, ok := <-w.admit:
		if !ok {
			return nil, errMoved
		}
		return pass, nil
	case <-ctx.Done():
	}
	defer g.processors.poke()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.queue.remove(w) {
		if pass, ok := <-w.admit; ok { // admitted at the same moment, and nothing was sent
			pass.gate.inFlight--
			g.processors.done()
			g.pace.giveBack()
		}
	}
	g.dispatch()
	return nil, context.Cause(ctx)
}

// Load is how busy the endpoint is: requests in flight and waiting for each that it takes at once.
func (g *Gate) Load() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return float64(g.inFlight+g.queue.len()) / g.limit.value
}

// State is what a gate has found out.
type State struct {
	Limit    float64 // requests in flight that it allows now
	Rate     float64 // requests each second that it allows now; +Inf while nothing speaks for a limit
	InFlight int
	Waiting  int
	Paused   time.Time // until when the server wants to be left alone; zero or in the past when it does not
	Held     bool      // the first of those that wait does so for the own processors, and not for the endpoint
}

// State tells the gate's figures, for logs and reports.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Limit: g.limit.value, Rate: g.pace.rate.value, InFlight: g.inFlight, Waiting: g.queue.len(), Paused: g.pace.until, Held: g.bound == byProcessors}
}

// dispatch admits everyone who may go now and sees to it that it is called again when the next one may. The caller
// holds the lock.
func (g *Gate) dispatch() {
	now := g.now()
	g.tick(now)
	// The wait for the own processors is short, and the endpoint has room: who is new begins with the others, so that all
	// end with the others.
	held := g.bound == byProcessors
	for g.bound = free; g.queue.len() > 0; {
		wait, why := g.hold(now)
		if g.bound = why; why != free {
			g.wake(wait)
			return
		}
		if !g.processors.take(g, now) {
			g.bound = byProcessors // which says nothing of the endpoint
			return
		}
		w := g.queue.pop(now, held)
		saved := g.pace.take()
		g.pace.sent(now)
		g.inFlight++
		g.admitted++
		w.admit <- &Pass{gate: g, sent: now, number: g.admitted, inFlight: g.inFlight, bound: w.bound, saved: saved}
	}
	if g.timer != nil {
		g.timer.Stop()
	}
}

// proceed admits those who may go by now.
func (g *Gate) proceed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dispatch()
}

// hold says what keeps the next request back, and for how long when it is a matter of time.
func (g *Gate) hold(now time.Time) (time.Duration, bound) {
	why, wait := free, time.Duration(0)
	g.pace.budgets = min(g.requests.rate(now, g.admitted), g.tokens.rate(now, g.admitted))
	if g.inFlight >= g.limit.allowed() {
		why = byLimit // a request that ends will wake us
		if g.limit.value < g.limit.target {
			wait = shortRound / 8 // it grows by itself
		}
	} else if wait = g.pace.until.Sub(now); wait > 0 {
		why = byPause
	} else if wait = g.pace.wait(); wait > 0 {
		why = byRate
		if g.pace.budgets < g.pace.rate.value {
			why = byBudget
		}
	}
	if why != free {
		g.queue.mark(why)
	}
	return wait, why
}

// wake has dispatch called after the wait; 0 leaves it to the end of a request.
func (g *Gate) wake(wait time.Duration) {
	if wait <= 0 {
		return
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, func() {
			g.proceed()
			g.processors.poke()
		})
		return
	}
	g.timer.Reset(wait)
}

// tick lets time pass: what was the bottleneck since the last call may grow, and the pace earns permissions.
func (g *Gate) tick(now time.Time) {
	passed := now.Sub(g.ticked)
	if passed <= 0 {
		return
	}
	switch g.bound {
	case byLimit:
		g.limit.age(passed)
	case byRate:
		g.pace.rate.age(passed.Seconds())
	}
	g.pace.earn(now, g.ticked)
	g.ticked = now
}
