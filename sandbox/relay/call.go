package relay

import (
	"context"
	"fmt"
	"syscall"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// pending is a call that has no answer yet.
type pending struct {
	longest int
	answer  chan answer // has room for it
	// late, when set, is what to do if the answer is a success and its caller has gone.
	late      func()
	abandoned bool
}

type answer struct {
	err  error
	body *wire.Decoder
}

func (c *Client) newID() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next
}

// call asks for something and waits for the answer. When ctx ends first, the other end is told so, and call returns the
// cause at once.
func (c *Client) call(ctx context.Context, method int64, m *message) (*wire.Decoder, error) {
	return c.callAs(ctx, c.newID(), method, m, nil)
}

func (c *Client) callAs(ctx context.Context, id uint64, method int64, m *message, late func()) (*wire.Decoder, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if n := m.length(); n > longestCall(method) {
		return nil, fmt.Errorf("ask with %d bytes: %w", n, syscall.E2BIG)
	}
	p := &pending{longest: longestAnswer(method), answer: make(chan answer, 1), late: late}
	c.mu.Lock()
	if c.closing && method != methodBye {
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", errClosed, sandbox.ErrGone)
	}
	c.pending[id] = p
	c.mu.Unlock()
	if begun, err := c.conn.say(ctx, ctx, frameCall, id, method, m); err != nil && c.conn.lost() == nil {
		if begun {
			c.abandon(id, p)
		} else {
			c.forget(id)
		}
		return nil, err
	}
	select {
	case a := <-p.answer:
		return a.body, a.err
	default:
	}
	select {
	case a := <-p.answer:
		return a.body, a.err
	case <-c.conn.gone:
		return nil, fmt.Errorf("%w: %w", sandbox.ErrGone, c.conn.lost())
	case <-ctx.Done():
		c.abandon(id, p)
		return nil, context.Cause(ctx)
	}
}

// abandon gives up a call. Its answer may have come just now, or may yet come.
func (c *Client) abandon(id uint64, p *pending) {
	c.mu.Lock()
	p.abandoned = true
	select {
	case a := <-p.answer:
		c.mu.Unlock()
		if a.err == nil && p.late != nil {
			p.late()
		}
		return
	default:
	}
	c.mu.Unlock()
	c.conn.send(frameCancel, address{stream: id}, nil)
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// errHalf is what becomes of a call that was given up while it was being answered.
var errHalf = fmt.Errorf("%w: half an answer", wire.ErrMalformed)

// tell asks for something without waiting for it.
func (c *Client) tell(method int64, numbers ...uint64) {
	var e wire.Encoder
	e.Int(method)
	e.Int(0)
	for _, n := range numbers {
		e.Int(int64(n))
	}
	c.conn.send(frameCall, address{stream: c.newID()}, e.Bytes)
}

// handle is called by the read loop.
func (c *Client) handle(f frame) error {
	id := f.at.stream
	switch f.kind {
	case frameReply:
		c.mu.Lock()
		p := c.pending[id]
		c.mu.Unlock()
		if p == nil {
			return nil // to a tell
		}
		return c.conn.hear(f, func(int64) int { return p.longest }, func(_ int64, d *wire.Decoder) { c.answered(id, p, d) }, func() {
			c.settle(id, p, answer{err: errHalf})
		})
	case frameExit:
		c.mu.Lock()
		p := c.processes[id]
		delete(c.processes, id)
		c.mu.Unlock()
		if p == nil {
			return nil
		}
		d := wire.NewDecoder(f.payload)
		exit, err := decodeExit(d)
		if d.Err() != nil {
			return d.Err()
		}
		p.exited(exit, err)
		return nil
	}
	return fmt.Errorf("%w: a frame of kind %d", wire.ErrMalformed, f.kind)
}

// answered gives an answer to whoever waits for it. One that is malformed ends the connection.
func (c *Client) answered(id uint64, p *pending, d *wire.Decoder) {
	a := answer{err: decodeError(d), body: d}
	if d.Err() != nil {
		c.conn.lose(d.Err())
		return
	}
	c.settle(id, p, a)
}

func (c *Client) settle(id uint64, p *pending, a answer) {
	c.mu.Lock()
	if c.pending[id] != p {
		c.mu.Unlock()
		return // answered twice: there is room for one
	}
	delete(c.pending, id)
	if !p.abandoned {
		p.answer <- a
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	if a.err == nil && p.late != nil {
		p.late()
	}
}
