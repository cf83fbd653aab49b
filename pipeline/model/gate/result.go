package gate

import "time"

// Kind says how a request ended, as far as that concerns the endpoint.
type Kind int

// The kinds of results.
const (
	Void    Kind = iota // not the endpoint's doing: cancelled, or an invalid request
	OK                  // a reply
	Limited             // refused: too many requests (429)
	Busy                // refused: too much to do (503, 529)
	Failed              // no answer, or a broken one
	Slow                // no reply in time
)

// Result is what became of a request.
type Result struct {
	Kind     Kind
	Latency  time.Duration
	Work     float64 // tokens that explain the latency: those of the reply, and a small share of the prompt's
	Spent    float64 // tokens that the server counts against its budget
	Requests Budget
	Tokens   Budget
}

const (
	// broken is how many requests in a row end without an answer before the endpoint counts as broken.
	broken = 3
	// A broken endpoint is tried again after firstProbe, and then after up to lastProbe.
	firstProbe, lastProbe = time.Second, 8 * time.Second
)

// Done ends the request and gives the gate its result.
func (p *Pass) Done(r Result) {
	g := p.gate
	defer g.processors.poke()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.processors.done()
	g.learn(p, r)
	g.dispatch()
}

// learn adjusts budgets, limit and health to a result.
func (g *Gate) learn(p *Pass, r Result) {
	if r.Spent > 0 {
		g.tokens.cost += 0.1 * (r.Spent - g.tokens.cost)
	}
	g.requests.update(p, r.Requests)
	g.tokens.update(p, r.Tokens)
	if r.Kind == OK {
		g.failures, g.pause = 0, 0
		g.down.Store(false)
	}
	g.limit.learn(p, r, g.inFlight, g.now())
	if r.Kind == Failed || r.Kind == Slow {
		g.failed()
	}
}

// failed counts a request without an answer.
func (g *Gate) failed() {
	if g.failures++; g.failures < broken || g.otherWorks == nil {
		return
	}
	if !g.down.Swap(true) {
		g.pause, g.probe = firstProbe, g.now().Add(firstProbe)
	}
	if g.otherWorks() {
		g.queue.clear()
	}
}
