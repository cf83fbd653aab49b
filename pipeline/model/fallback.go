package model

import (
	"context"
	"slices"
	"time"
)

// Fallbacks is a Model that asks other models when the first one fails. An episode stays with the model that answered it last;
// a new episode begins with the first model. It is safe for concurrent use.
type Fallbacks struct {
	clients []*Client
	names   []string
}

var _ Model = (*Fallbacks)(nil)

// WithFallbacks makes a Model of several. The caller closes the clients.
func WithFallbacks(first *Client, others ...*Client) *Fallbacks {
	f := &Fallbacks{clients: append([]*Client{first}, others...)}
	for i, client := range f.clients {
		name := client.cfg.Name
		if slices.ContainsFunc(f.clients, func(c *Client) bool { return c != client && c.cfg.Name == name }) {
			name += " at " + client.where()
		}
		if i == 0 {
			name = "" // Reply.Fallback is empty for the first model
		}
		f.names = append(f.names, name)
	}
	return f
}

// Complete asks one model after the other. If all are in an outage, it waits for the first to end.
func (f *Fallbacks) Complete(ctx context.Context, req Request) (Reply, error) {
	if req.Clock != nil {
		req.Clock.Stop()
	}
	p := &passing{Fallbacks: f, req: req, refused: make([]bool, len(f.clients)), own: -1}
	for {
		reply, failed, paused := p.round(ctx)
		switch {
		case failed == nil:
			return reply, nil
		case !paused || p.exhausted():
			return Reply{}, p.end(failed)
		case f.spent():
			// While another model works, which refused this conversation, other episodes can go on with it.
			if failed.Fatal = f.Paused(); failed.Fatal {
				failed.Message += "; that is the outage limit"
			}
			return Reply{}, p.end(failed)
		}
		began := f.clients[0].cfg.Now()
		gone := !f.rest(ctx)
		p.Waited += f.clients[0].cfg.Now().Sub(began)
		if gone {
			p.own = -1
			return Reply{}, p.end(f.clients[0].doer.failure(ctx, ctx, &exchange{}, context.Cause(ctx)))
		}
	}
}

// passing is one Complete of Fallbacks.
type passing struct {
	*Fallbacks
	req     Request
	refused []bool // models that failed, except by an outage: they are not asked, or paid, again
	last    *Error // the last error of a refused model
	own     int    // its index in Retries, from which it is removed if the call ends with it; -1 without
	Tries
}

// round asks each model that is not refused once, beginning with that of the last turn. paused says that an outage kept one
// from being asked, so that another round may help.
func (p *passing) round(ctx context.Context) (reply Reply, failed *Error, paused bool) {
	start := max(0, slices.Index(p.names, p.req.Fallback))
	for i := range p.clients {
		at := (start + i) % len(p.clients)
		if p.refused[at] {
			continue
		}
		req := p.req
		if p.names[at] != p.req.Fallback {
			req.Known = Known{} // another model has another tokenizer
		}
		req.Retried += p.Retried
		var answer *Reply
		answer, failed = p.clients[at].complete(ctx, &req, p.clients[at].breaker, false)
		if failed == nil {
			reply = *answer
			reply.Tries = p.Tries.and(reply.Tries)
			reply.Fallback = p.names[at]
			return reply, nil, false
		}
		p.Tries = p.Tries.and(failed.Tries)
		if failed.paused {
			paused = true
			continue
		}
		p.refused[at], p.last, p.own = true, failed, len(p.Retries)
		p.Retries = append(p.Retries, failed.Fault())
		if failed.Fatal || !policies[failed.Class].fallback {
			return Reply{}, mend(failed), false
		}
	}
	if p.last != nil { // a refusal says more about the conversation than an outage does
		failed = p.last
	}
	return Reply{}, failed, paused
}

// end adds the call's retries and waits to its last error.
func (p *passing) end(failed *Error) *Error {
	if p.own >= 0 {
		p.Retries = slices.Delete(p.Retries, p.own, p.own+1)
	}
	failed.Tries = p.Tries
	return failed
}

// exhausted reports whether the episode has no retries left.
func (p *passing) exhausted() bool {
	limit := p.clients[0].cfg.EpisodeRetries
	return limit > 0 && p.req.Retried+p.Retried >= limit
}

// spent reports whether all outages have lasted too long, and there is one.
func (f *Fallbacks) spent() bool {
	any := false
	for _, client := range f.clients {
		paused, overdue, _ := client.breaker.outlook()
		if paused && !overdue {
			return false
		}
		any = any || paused
	}
	return any
}

// rest waits until an outage may be over. It returns false if the context ended first.
func (f *Fallbacks) rest(ctx context.Context) bool {
	const longest = time.Second // another call may end the outage earlier
	pause := longest
	for _, client := range f.clients {
		if paused, _, left := client.breaker.outlook(); paused {
			pause = min(pause, left)
		}
	}
	return sleep(ctx, max(pause, 10*time.Millisecond), nil)
}

// Paused reports whether all models are in an outage.
func (f *Fallbacks) Paused() bool {
	return !slices.ContainsFunc(f.clients, func(c *Client) bool { return !c.Paused() })
}

// Paused reports whether the model is in an outage.
func (c *Client) Paused() bool { return c.breaker.paused() }
