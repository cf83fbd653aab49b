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

// remote is a sandbox on the server.
type remote struct {
	*held
	id     int64
	name   string
	layout sandbox.Layout

	commands    context.Context // cancelling it ends them
	endCommands context.CancelFunc

	mu      sync.Mutex // guards what follows
	traffic []sandbox.Connection

	closing  sync.Once
	closeErr error
}

func (b *remote) Layout() sandbox.Layout { return b.layout }

func (b *remote) Files() sandbox.Files { return files{b} }

func (b *remote) errGone() error {
	if b.client.link.lost() != nil {
		return b.client.errGone("sandbox " + b.name)
	}
	return fmt.Errorf("sandbox %s: %w", b.name, sandbox.ErrGone)
}

// about begins a message with this sandbox's number.
func (b *remote) about() *message {
	var m message
	m.Int(b.id)
	return &m
}

// call sends a request about this sandbox.
func (b *remote) call(ctx context.Context, method string, m *message) (*wire.Decoder, error) {
	if b.commands.Err() != nil {
		return nil, b.errGone()
	}
	d, err := b.client.call(ctx, method, m)
	if errors.Is(err, sandbox.ErrGone) && b.client.link.lost() != nil {
		return nil, b.errGone()
	}
	return d, err
}

// malformed ends the connection when an answer could not be decoded.
func (b *remote) malformed(err error) error {
	if err == nil {
		return nil
	}
	b.client.link.lose(err)
	return b.errGone()
}

func (b *remote) KillAll(ctx context.Context) error {
	_, err := b.call(ctx, methodKillAll, b.about())
	return err
}

// Close ends the sandbox, which is gone already if the connection is.
func (b *remote) Close() error {
	b.closing.Do(func() {
		b.endCommands()
		d, err := b.release(methodShut, b.id)
		if err == nil {
			_, err = b.connections(d)
		}
		if err != nil && !errors.Is(err, sandbox.ErrGone) {
			b.closeErr = fmt.Errorf("close sandbox %s: %w", b.name, err)
		}
	})
	return b.closeErr
}

// connections reads the traffic so far.
func (b *remote) connections(d *wire.Decoder) ([]sandbox.Connection, error) {
	var all []sandbox.Connection
	if err := b.malformed(decodeJSON(d, &all)); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.traffic = all
	return all, nil
}

// snapshotter adds Snapshot to a sandbox that the server can fork.
type snapshotter struct{ box *remote }

func (s snapshotter) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	c := s.box.client
	h, d, err := c.hold(ctx, c.life, methodSnapshot, s.box.about(), nil)
	if err != nil {
		return nil, err
	}
	return &snapshot{held: h, id: d.Int()}, nil
}

// snapshot is a snapshot on the server.
type snapshot struct {
	*held
	id int64

	closing  sync.Once
	closeErr error
}

func (s *snapshot) Close() error {
	s.closing.Do(func() {
		if _, err := s.release(methodDrop, s.id); err != nil && !errors.Is(err, sandbox.ErrGone) {
			s.closeErr = fmt.Errorf("close a snapshot: %w", err)
		}
	})
	return s.closeErr
}

// meter adds Connections to a sandbox whose traffic the server counts.
type meter struct{ box *remote }

// trafficTime bounds how long Connections, which has no context, waits.
const trafficTime = 10 * time.Second

func (m meter) Connections() []sandbox.Connection {
	ctx, cancel := context.WithTimeout(context.Background(), trafficTime)
	defer cancel()
	if d, err := m.box.call(ctx, methodTraffic, m.box.about()); err == nil {
		if all, err := m.box.connections(d); err == nil {
			return all
		}
	}
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	return m.box.traffic
}
