package gate

import "time"

// Kind says how a request ended, as far as it tells about the endpoint.
type Kind int

// The kinds of results.
const (
	Void    Kind = iota // says nothing about the endpoint: cancelled, or wrong by itself
	OK                  // a reply
	Limited             // refused: too many requests (429)
	Busy                // refused: too much to do (503, 529)
	Failed              // no answer, or a broken one
	Slow                // no reply in time
)

// Result is what became of a request.
type Result struct {
	Kind       Kind
	Latency    time.Duration
	Work       float64       // tokens that the time went into: those of the reply, and a small share of the prompt's
	Spent      float64       // tokens that the server counts against its budget
	RetryAfter time.Duration // how long the server wants to be left alone
	Requests   Budget
	Tokens     Budget
}

// Done ends the request and tells the gate what became of it.
func (p *Pass) Done(r Result) {
	g := p.gate
	defer g.processors.poke()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.tick(now)
	g.inFlight--
	g.processors.done()
	g.learn(p, r, now)
	g.dispatch()
}

// learn adjusts the limits.
func (g *Gate) learn(p *Pass, r Result, now time.Time) {
	if r.Spent > 0 {
		g.tokens.cost += 0.1 * (r.Spent - g.tokens.cost)
	}
	g.requests.told(p, r.Requests)
	g.tokens.told(p, r.Tokens)
	switch r.Kind {
	case OK:
		g.doubt.count(false)
		g.answered(p, now)
		bottleneck := p.bound == byLimit || p.inFlight >= g.limit.allowed()
		g.limit.answered(now, p.inFlight, bottleneck, r.Latency)
		if g.limit.speed.judge(now, p.inFlight, r, g.limit.round) && bottleneck && p.number > g.trouble.last {
			g.begin(now)
			g.limit.cut(relief)
		}
	case Limited, Busy:
		g.doubt.count(true)
		g.refused(p, r, now)
	case Failed, Slow:
		g.failed(p, now)
	}
}
