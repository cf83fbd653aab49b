package relay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// methods are what a server does for a call, but for methodStart: m takes the answer.
var methods = [methodsEnd]func(s *server, ctx context.Context, id uint64, d *wire.Decoder, m *message) error{
	methodOpen:    (*server).open,
	methodShut:    (*server).shut,
	methodKill:    (*server).kill,
	methodResize:  (*server).resize,
	methodKillAll: withBox(killAll),
	methodStat: withBox(func(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
		info, err := b.Files().Stat(ctx, d.String())
		encodeInfos(&m.Encoder, info)
		return err
	}),
	methodRead:  withBox(read),
	methodWrite: withBox(write),
	methodList: withBox(func(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
		path := d.String()
		infos, err := b.Files().List(ctx, path)
		encodeInfos(&m.Encoder, infos...)
		if err == nil && m.length() > maxList {
			return &fs.PathError{Op: "list", Path: path, Err: syscall.EMSGSIZE}
		}
		return err
	}),
	methodRemove: withBox(func(ctx context.Context, b *served, d *wire.Decoder, _ *message) error {
		return b.Files().Remove(ctx, d.Strings()...)
	}),
	methodSnapshot: (*server).snapshot,
	methodDrop:     (*server).drop,
	methodTraffic: withBox(func(_ context.Context, b *served, _ *wire.Decoder, m *message) error {
		b.connections(m)
		return nil
	}),
	methodBye: func(s *server, _ context.Context, _ uint64, _ *wire.Decoder, _ *message) error {
		s.bye.Store(true)
		return s.end()
	},
}

func withBox(f func(context.Context, *served, *wire.Decoder, *message) error) func(*server, context.Context, uint64, *wire.Decoder, *message) error {
	return func(s *server, ctx context.Context, _ uint64, d *wire.Decoder, m *message) error {
		b, err := s.box(d)
		if err != nil {
			return err
		}
		return f(ctx, b, d, m)
	}
}

// box finds the sandbox that a message names.
func (s *server) box(d *wire.Decoder) (*served, error) {
	id := uint64(d.Int())
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boxes[id]
	if b == nil {
		return nil, fmt.Errorf("it is closed: %w", sandbox.ErrGone)
	}
	return b, nil
}

func (s *server) open(ctx context.Context, id uint64, d *wire.Decoder, m *message) error {
	spec, from := decodeSpec(d)
	if d.Err() != nil {
		return d.Err()
	}
	if from != 0 {
		s.mu.Lock()
		spec.From = s.snapshots[from]
		s.mu.Unlock()
		if spec.From == nil {
			return fmt.Errorf("open sandbox %s: its snapshot is closed", spec.ID)
		}
	}
	sb, err := s.backend.Open(ctx, spec)
	if err != nil {
		return err
	}
	if s.bye.Load() || s.life.Err() != nil {
		return errors.Join(errClosed, sb.Close()) // it came after all others were closed
	}
	s.mu.Lock()
	s.boxes[id] = &served{Sandbox: sb}
	s.mu.Unlock()
	_, snapshots := sb.(sandbox.Snapshotter)
	_, traffic := sb.(sandbox.Traffic)
	encodeLayout(&m.Encoder, sb.Layout())
	m.Bool(snapshots)
	m.Bool(traffic)
	return s.said.news(s.backend.Guarantees(), m)
}

// shut closes a sandbox. Whoever still waits for room to send its output is let go first.
func (s *server) shut(_ context.Context, _ uint64, d *wire.Decoder, m *message) error {
	id := uint64(d.Int())
	s.mu.Lock()
	b := s.boxes[id]
	delete(s.boxes, id)
	if b != nil {
		b.shut = true
	}
	var commands []*command
	for _, c := range s.commands {
		if c.box == b {
			commands = append(commands, c)
		}
	}
	s.mu.Unlock()
	if b == nil {
		m.Int(0)
		return nil
	}
	for _, c := range commands {
		c.mute()
	}
	err := b.Close()
	b.sockets.abandon()
	b.connections(m)
	return err
}

func (b *served) connections(m *message) {
	var connections []sandbox.Connection
	if t, ok := b.Sandbox.(sandbox.Traffic); ok {
		connections = t.Connections()
	}
	encodeConnections(&m.Encoder, connections)
}

func killAll(ctx context.Context, b *served, _ *wire.Decoder, _ *message) error {
	return b.KillAll(ctx)
}

func read(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
	path, offset, limit := d.String(), d.Int(), d.Int()
	if limit > maxRead {
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	data, info, err := b.Files().Read(ctx, path, offset, limit)
	encodeInfos(&m.Encoder, info)
	m.bulk(data)
	return err
}

func write(ctx context.Context, b *served, d *wire.Decoder, _ *message) error {
	files := decodeFiles(d)
	if d.Err() != nil {
		return d.Err()
	}
	return b.Files().Write(ctx, files...)
}

func (s *server) snapshot(ctx context.Context, id uint64, d *wire.Decoder, _ *message) error {
	b, err := s.box(d)
	if err != nil {
		return err
	}
	forkable, ok := b.Sandbox.(sandbox.Snapshotter)
	if !ok {
		return errMethod
	}
	snapshot, err := forkable.Snapshot(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.snapshots[id] = snapshot
	s.mu.Unlock()
	return nil
}

func (s *server) drop(_ context.Context, _ uint64, d *wire.Decoder, _ *message) error {
	id := uint64(d.Int())
	s.mu.Lock()
	snapshot := s.snapshots[id]
	delete(s.snapshots, id)
	s.mu.Unlock()
	if snapshot == nil {
		return nil
	}
	return snapshot.Close()
}

// kill ends a command; when the caller lost interest before it knew that it had started, it is not asked for again.
func (s *server) kill(ctx context.Context, _ uint64, d *wire.Decoder, _ *message) error {
	id, grace, unwanted := uint64(d.Int()), time.Duration(d.Int()), d.Bool()
	s.mu.Lock()
	c := s.commands[id]
	if unwanted {
		delete(s.commands, id)
	}
	s.mu.Unlock()
	if c == nil || d.Err() != nil {
		return d.Err()
	}
	if unwanted {
		c.mute()
	}
	return c.process.Kill(ctx, grace)
}

func (s *server) resize(ctx context.Context, _ uint64, d *wire.Decoder, _ *message) error {
	id, size := uint64(d.Int()), decodeSize(d)
	s.mu.Lock()
	c := s.commands[id]
	s.mu.Unlock()
	if c == nil || d.Err() != nil {
		return d.Err()
	}
	t, ok := c.process.(sandbox.Terminal)
	if !ok {
		return errMethod
	}
	return t.Resize(ctx, size)
}
