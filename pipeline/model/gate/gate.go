// Package gate decides when a request may go to a model's endpoint.
//
// A Gate holds back requests that the endpoint would refuse: it finds out how many requests at once the endpoint takes, and
// follows changes. Requests that wait go in a fair order. A Set deals requests to several endpoints of one model.
// Processors, which all gates share, hold back requests that this process has no processor time for.
package gate

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Config says between which bounds a Gate may move.
type Config struct {
	Floor   int // requests in flight that are always allowed; 0 means 1
	Ceiling int // requests in flight, at most; 0 means no bound
	Now     func() time.Time
	// Processors are shared by all gates of a process; nil holds no request back for lack of processor time.
	Processors *Processors
}

// Ticket describes a request that waits.
type Ticket struct {
	Episode string
	Turn    int       // an episode in progress goes before one that has not begun
	Since   time.Time // when it began to wait: the longest wait goes first
}

// Gate admits requests to one endpoint. It is safe for concurrent use.
type Gate struct {
	now  func() time.Time
	down atomic.Bool // the last requests got no answer and another endpoint works; read without the lock

	mu       sync.Mutex // guards the fields below
	queue    queue
	inFlight int
	limit    limit
	pace     *rate.Limiter
	requests budget
	tokens   budget
	failures int       // requests without an answer, in a row
	probe    time.Time // when a broken endpoint is asked again
	pause    time.Duration
	// otherWorks reports whether another endpoint works, to which the requests that wait here can move. It takes no lock.
	otherWorks func() bool
	timer      *time.Timer // calls dispatch when time alone may let the next request go

	processors *Processors
	busy       bool // the first request in the queue waits only for processors
	held       bool // the gate waits for its turn at processors; guarded by their lock
}

// New makes a gate.
func New(cfg Config) *Gate {
	floor, ceiling := max(float64(cfg.Floor), least), float64(cfg.Ceiling)
	if cfg.Ceiling <= 0 {
		ceiling = math.MaxInt32
	}
	return &Gate{
		now: cfg.Now, processors: cfg.Processors, limit: newLimit(floor, max(ceiling, floor)),
		pace: rate.NewLimiter(rate.Inf, 1), tokens: budget{cost: 1}, requests: budget{cost: 1},
	}
}

// Pass is the permission for one request. Its holder calls Done exactly once.
type Pass struct {
	gate   *Gate
	sent   time.Time
	number int  // of the request, from 1
	beyond bool // the request goes beyond the limit
	round  bool // the request is part of a round
	trial  bool // the request is part of a trial
	proof  bool // the request is part of a proof
	down   bool // the trial is one downwards
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
		if pass, ok := <-w.admit; ok { // admitted at the same moment, and not sent
			g.inFlight--
			g.processors.done()
			g.limit.learn(pass, Result{}, g.inFlight, g.now())
		}
	}
	g.dispatch()
	return nil, context.Cause(ctx)
}

// burden estimates by how many seconds the endpoint's load would delay a request that arrives now, from arrival to reply.
// more is an extra cost, as a share of the request's latency.
func (g *Gate) burden(more float64) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &g.limit
	ahead := float64(g.inFlight + g.queue.len() + 1)
	if l.latency == 0 {
		return max(ahead/l.value-1, 0) + more
	}
	idle := l.quickest * (l.work + fixed)
	takes := max(l.latency*min(ahead/l.used(), 1), idle)
	return max(ahead-l.value, 0)/l.value*l.latency + takes - idle + more*takes
}

// dispatch admits the requests that may go now, and sets the timer for the next one. The caller holds the lock.
func (g *Gate) dispatch() {
	now := g.now()
	g.limit.judge(now)
	g.limit.trial.relieve(&g.limit)
	// When requests wait only for processors, the wait is short and the endpoint has room: new episodes then begin in the order
	// of waiting, so that all episodes end at about the same time.
	evenly := g.busy
	for g.busy = false; g.queue.len() > 0; {
		wait, ok, beyond := g.room(now)
		if !ok {
			g.wake(wait)
			return
		}
		if !g.processors.take(g, now) {
			g.busy = true
			return
		}
		w := g.queue.pop(now, evenly)
		pass := &Pass{gate: g, sent: now, beyond: beyond}
		g.limit.send(pass, now, g.inFlight >= g.limit.places()-1 || g.queue.len() > 0)
		if !beyond {
			g.pace.ReserveN(now, 1)
		}
		g.inFlight++
		w.admit <- pass
	}
	if g.timer != nil {
		g.timer.Stop()
	}
}

// proceed calls dispatch under the lock.
func (g *Gate) proceed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dispatch()
}

// room reports whether the endpoint takes another request now, and whether that request is beyond the limit. If not, wait is
// when to look again; 0 means when a request ends.
func (g *Gate) room(now time.Time) (wait time.Duration, ok, beyond bool) {
	budgets := min(g.requests.rate(now, g.limit.admitted), g.tokens.rate(now, g.limit.admitted))
	pace, burst := g.limit.rate(), g.limit.burst()
	if budgets < pace {
		pace, burst = budgets, 1
	}
	if !math.IsInf(pace, 1) {
		const longest = 0.25 // seconds: the rate may change meanwhile, as a budget's remainder does
		if g.pace.Limit() != rate.Limit(pace) {
			g.pace.SetLimitAt(now, rate.Limit(pace))
			g.pace.SetBurstAt(now, burst)
		}
		if tokens := g.pace.TokensAt(now); tokens < 1-1e-6 {
			wait = time.Duration(max(min((1-tokens)/pace, longest), 1e-4) * float64(time.Second))
		}
	} else {
		g.pace.SetLimitAt(now, rate.Inf)
	}
	if wait > 0 && budgets <= pace {
		return wait, false, false
	}
	if wait == 0 && g.inFlight < g.limit.places() {
		return 0, true, false
	}
	if !math.IsInf(budgets, 1) { // the server's headers give the rate, so trials are not needed
		return wait, false, false
	}
	wait, ok = g.limit.more(now, g.inFlight, wait)
	return wait, ok, true
}

// wake sets the timer that calls dispatch after the wait. With 0 the end of a request calls it.
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
