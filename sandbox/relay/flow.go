package relay

import (
	"context"
	"fmt"
	"io"
	"sync"

	"trajgen/sandbox/internal/wire"
)

// source sends the bytes of a channel, as far as the other end has room for them.
type source struct {
	conn *conn
	at   address
	more chan struct{} // has a token after credit was granted
	stop chan struct{} // closed when the reader has gone

	sending sync.Mutex // held by the one that sends
	mu      sync.Mutex // guards what follows
	credit  int
	stopped bool
}

func (c *conn) newSource(at address) *source {
	s := &source{conn: c, at: at, credit: window, more: make(chan struct{}, 1), stop: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == nil {
		c.sources[at] = s
	}
	return s
}

// grant is called by the read loop.
func (s *source) grant(n int) error {
	s.mu.Lock()
	s.credit += n
	credit := s.credit
	s.mu.Unlock()
	if credit > window {
		return fmt.Errorf("%w: more credit than there is room", wire.ErrMalformed)
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

// close gives the channel up: who sends is told so.
func (s *source) close() {
	s.conn.mu.Lock()
	if s.conn.sources[s.at] == s {
		delete(s.conn.sources, s.at)
	}
	s.conn.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.stop)
	}
}

// end says that nothing follows. When reset, nothing is read from the other direction either.
func (s *source) end(reset bool) {
	s.sending.Lock()
	defer s.sending.Unlock()
	var payload []byte
	if reset {
		payload = []byte{1}
	}
	_ = s.conn.post(context.Background(), nil, frameEnd, s.at, payload)
}

func (s *source) send(ctx context.Context, p []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	for len(p) > 0 {
		n, err := s.take(ctx, min(len(p), maxChunk))
		if err != nil {
			return err
		}
		if err := s.conn.post(ctx, s.stop, frameData, s.at, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// take waits for credit and takes up to most of it.
func (s *source) take(ctx context.Context, most int) (int, error) {
	for {
		s.mu.Lock()
		n := min(s.credit, most)
		s.credit -= n
		s.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-s.more:
		case <-s.stop:
			return 0, errStopped
		case <-s.conn.gone:
			return 0, s.conn.lost()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Write sends p to its end: a source is the writer of what a command prints.
func (s *source) Write(p []byte) (int, error) {
	if err := s.send(context.Background(), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// copyFrom sends what a reader yields, until it ends.
func (s *source) copyFrom(r io.Reader) error {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	for {
		n, err := r.Read(*chunk)
		if sent := s.send(context.Background(), (*chunk)[:n]); sent != nil {
			return sent
		}
		if err != nil {
			return err
		}
	}
}

// pump writes what comes in on a channel to a writer that may block, which only keeps the other end of this channel from
// sending. A goroutine runs as long as there is something to write.
type pump struct {
	conn   *conn
	at     address
	closed func(reset bool) // called once, when the channel has ended and all of it is written; must not block

	mu      sync.Mutex // guards what follows
	writer  io.Writer
	pending []byte
	spare   []byte
	active  bool
	room    int // bytes that may still come
	written int // bytes that room was not yet given back for
	ended   bool
	reset   bool
	done    bool
}

func newPump(c *conn, at address, writer io.Writer, closed func(reset bool)) *pump {
	return &pump{conn: c, at: at, writer: writer, closed: closed, room: window}
}

func (p *pump) data(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b) > p.room {
		return fmt.Errorf("%w: more bytes on a channel than there is room for", wire.ErrMalformed)
	}
	if p.ended {
		return nil
	}
	p.room -= len(b)
	p.pending = append(p.pending, b...)
	if !p.active {
		p.active = true
		go p.run()
	}
	return nil
}

func (p *pump) run() {
	p.mu.Lock()
	for len(p.pending) > 0 {
		batch := p.pending
		p.pending = p.spare
		p.mu.Unlock()
		_, err := p.writer.Write(batch)
		p.mu.Lock()
		if err != nil {
			p.writer = io.Discard // it stops listening; the other end need not notice
		}
		if p.spare = batch[:0]; cap(p.spare) > 2*maxChunk {
			p.spare = nil
		}
		p.giveBack(len(batch))
	}
	p.active = false
	p.mu.Unlock()
	p.finish()
}

// giveBack is called with the lock held. It says so to the other end now and then, and never for what prints little.
func (p *pump) giveBack(n int) {
	p.written += n
	if p.written < window/2 || p.ended {
		return
	}
	var e wire.Encoder
	e.Int(int64(p.written))
	p.room += p.written
	p.written = 0
	p.conn.send(frameCredit, p.at, e.Bytes)
}

func (p *pump) end(reset bool) {
	p.mu.Lock()
	p.ended, p.reset = true, p.reset || reset
	p.mu.Unlock()
	p.finish()
}

func (p *pump) finish() {
	p.mu.Lock()
	finished, reset := p.ended && !p.active && !p.done, p.reset
	if finished {
		p.done = true
		p.pending, p.spare = nil, nil
	}
	p.mu.Unlock()
	if finished {
		p.closed(reset)
	}
}

// collector puts a long message together.
type collector struct {
	conn    *conn
	at      address
	want    int
	message []byte
	written int
	done    func(message []byte) // called by the read loop
	// broken is called when the channel ends too early.
	broken func()
}

func (c *collector) data(p []byte) error {
	if len(p) > c.want-len(c.message) {
		return fmt.Errorf("%w: a message is longer than was said", wire.ErrMalformed)
	}
	if room := cap(c.message); len(c.message)+len(p) > room {
		// What was announced is believed bit by bit.
		grown := make([]byte, len(c.message), min(c.want, max(1<<20, 4*room)))
		copy(grown, c.message)
		c.message = grown
	}
	c.message = append(c.message, p...)
	if len(c.message) == c.want {
		c.conn.detach(c.at)
		c.done(c.message)
		return nil
	}
	if c.written += len(p); c.written >= window/2 {
		var e wire.Encoder
		e.Int(int64(c.written))
		c.written = 0
		c.conn.send(frameCredit, c.at, e.Bytes)
	}
	return nil
}

func (c *collector) end(bool) {
	if c.broken != nil {
		c.broken()
	}
}
