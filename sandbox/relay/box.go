package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// box is a sandbox at the other end.
type box struct {
	client *Client
	id     uint64
	name   string
	layout sandbox.Layout

	sockets sockets

	mu      sync.Mutex // guards what follows
	closed  bool
	traffic []sandbox.Connection // at the end

	closing  sync.Once
	closeErr error
}

func (b *box) Layout() sandbox.Layout { return b.layout }

func (b *box) Files() sandbox.Files { return files{b} }

func (b *box) what() string { return "sandbox " + b.name }

func (b *box) errGone() error {
	if b.client.conn.lost() != nil {
		return b.client.errGone(b.what())
	}
	return fmt.Errorf("%s: %w", b.what(), sandbox.ErrGone)
}

// call asks for something about this sandbox, which goes before the rest of the message.
func (b *box) call(ctx context.Context, method int64, fill func(*message)) (*wire.Decoder, error) {
	return b.callAs(ctx, b.client.newID(), method, nil, fill)
}

func (b *box) callAs(ctx context.Context, id uint64, method int64, late func(), fill func(*message)) (*wire.Decoder, error) {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, b.errGone()
	}
	var m message
	m.Int(int64(b.id))
	if fill != nil {
		fill(&m)
	}
	d, err := b.client.callAs(ctx, id, method, &m, late)
	if err != nil && errors.Is(err, sandbox.ErrGone) && b.client.conn.lost() != nil {
		return nil, b.errGone()
	}
	return d, err
}

func (b *box) KillAll(ctx context.Context) error {
	_, err := b.call(ctx, methodKillAll, nil)
	return err
}

// Close ends the sandbox. With the connection, it is gone already.
func (b *box) Close() error {
	b.closing.Do(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
		defer cancel()
		d, err := b.call(ctx, methodShut, nil)
		b.mu.Lock()
		b.closed = true
		if err == nil {
			b.traffic = decodeConnections(d)
		}
		b.mu.Unlock()
		b.client.lose(b)
		b.sockets.abandon()
		if err != nil && !errors.Is(err, sandbox.ErrGone) {
			b.closeErr = fmt.Errorf("close %s: %w", b.what(), err)
		}
	})
	return b.closeErr
}

// lose ends the commands of a sandbox that is gone.
func (c *Client) lose(b *box) {
	var lost []*process
	c.mu.Lock()
	for id, p := range c.processes {
		if p.box == b {
			lost = append(lost, p)
			delete(c.processes, id)
		}
	}
	c.mu.Unlock()
	for _, p := range lost {
		p.lost(b.errGone())
	}
}

// snapshotter is what a box has more when the other end's sandboxes can be forked.
type snapshotter struct{ box *box }

func (s snapshotter) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	c := s.box.client
	id := c.newID()
	drop := func() { c.tell(methodDrop, id) }
	if _, err := s.box.callAs(ctx, id, methodSnapshot, drop, nil); err != nil {
		return nil, err
	}
	return &snapshot{client: c, id: id}, nil
}

// snapshot is a snapshot at the other end.
type snapshot struct {
	client *Client
	id     uint64

	closing  sync.Once
	closeErr error
}

func (s *snapshot) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("no answer in %v", closeTime))
		defer cancel()
		var m message
		m.Int(int64(s.id))
		if _, err := s.client.call(ctx, methodDrop, &m); err != nil && !errors.Is(err, sandbox.ErrGone) {
			s.closeErr = fmt.Errorf("close a snapshot: %w", err)
		}
	})
	return s.closeErr
}

// meter is what a box has more when the other end counts its sandboxes' traffic.
type meter struct{ box *box }

// trafficTime bounds how long Connections, which has no context, waits.
const trafficTime = 10 * time.Second

func (m meter) Connections() []sandbox.Connection {
	ctx, cancel := context.WithTimeout(context.Background(), trafficTime)
	defer cancel()
	d, err := m.box.call(ctx, methodTraffic, nil)
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	if err == nil {
		m.box.traffic = decodeConnections(d)
	}
	return m.box.traffic
}
