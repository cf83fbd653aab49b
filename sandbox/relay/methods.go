package relay

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// methods are the requests with one answer, which each function writes to m.
var methods = map[string]func(s *server, ctx context.Context, d *wire.Decoder, m *message) error{
	methodShut: func(s *server, _ context.Context, d *wire.Decoder, m *message) error {
		b := s.boxes.remove(d.Int())
		if b == nil {
			return errShut
		}
		err := b.Close()
		b.connections(m)
		return err
	},
	methodForget: withBox(func(_ context.Context, b *served, d *wire.Decoder, _ *message) error {
		b.commands.remove(d.Int())
		return nil
	}),
	methodKill:   withCommand(kill),
	methodResize: withCommand(resize),
	methodKillAll: withBox(func(ctx context.Context, b *served, _ *wire.Decoder, _ *message) error {
		return b.KillAll(ctx)
	}),
	methodStat: withBox(func(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
		found, err := b.Files().Stat(ctx, d.String())
		info := infoOf(found)
		m.Add(&info)
		return err
	}),
	methodRead:  withBox(read),
	methodWrite: withBox(write),
	methodList: withBox(func(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
		path := d.String()
		found, err := b.Files().List(ctx, path)
		wire.List(m.Coder(), &found, func(f *sandbox.Info, c wire.Coder) {
			info := infoOf(*f)
			info.Fields(c)
		})
		if err == nil && m.length() > maxList {
			return &fs.PathError{Op: "list", Path: path, Err: syscall.EMSGSIZE}
		}
		return err
	}),
	methodRemove: withBox(func(ctx context.Context, b *served, d *wire.Decoder, _ *message) error {
		return b.Files().Remove(ctx, d.Strings()...)
	}),
	methodDrop: func(s *server, _ context.Context, d *wire.Decoder, _ *message) error {
		sealed := s.snapshots.remove(d.Int())
		if sealed == nil {
			return errShut
		}
		return sealed.Close()
	},
	methodTraffic: withBox(func(_ context.Context, b *served, _ *wire.Decoder, m *message) error {
		b.connections(m)
		return nil
	}),
	methodPing: func(*server, context.Context, *wire.Decoder, *message) error { return nil },
	methodBye: func(s *server, _ context.Context, _ *wire.Decoder, _ *message) error {
		s.bye.Store(true)
		return s.end()
	},
}

func withBox(f func(context.Context, *served, *wire.Decoder, *message) error) func(*server, context.Context, *wire.Decoder, *message) error {
	return func(s *server, ctx context.Context, d *wire.Decoder, m *message) error {
		b, err := s.box(d)
		if err != nil {
			return err
		}
		return f(ctx, b, d, m)
	}
}

// withCommand does nothing for a command that the client has forgotten.
func withCommand(f func(context.Context, sandbox.Process, *wire.Decoder) error) func(*server, context.Context, *wire.Decoder, *message) error {
	return withBox(func(ctx context.Context, b *served, d *wire.Decoder, _ *message) error {
		if c := b.commands.find(d.Int()); c != nil {
			return f(ctx, c.process, d)
		}
		return nil
	})
}

// box finds the sandbox that a message names.
func (s *server) box(d *wire.Decoder) (*served, error) {
	b := s.boxes.find(d.Int())
	if b == nil {
		return nil, errShut
	}
	return b, nil
}

var errShut = fmt.Errorf("it is closed: %w", sandbox.ErrGone)

// open opens a sandbox, answers with its number, and stays until the client closes it.
func (s *server) open(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	from := d.Int()
	var spec sandbox.Spec
	if err := decodeJSON(d, &spec); err != nil {
		return err
	}
	if from != 0 {
		sealed := s.snapshots.find(from)
		if sealed == nil {
			return fmt.Errorf("open sandbox %s: its snapshot is closed", spec.ID)
		}
		spec.From = sealed.Snapshot
	}
	sb, err := s.backend.Open(r.Context(), spec)
	if err != nil {
		return err
	}
	b := &served{Sandbox: sb}
	id := s.boxes.add(b)
	_, snapshots := sb.(sandbox.Snapshotter)
	_, traffic := sb.(sandbox.Traffic)
	var m message
	m.Bool(false)
	m.Int(id)
	where := layout(sb.Layout())
	m.Add(&where)
	m.Bool(snapshots)
	m.Bool(traffic)
	encodeJSON(&m.Encoder, s.backend.Guarantees())
	writeMessage(w, &m)
	flush(w)
	<-r.Context().Done()
	if s.boxes.remove(id) != nil {
		_ = sb.Close()
	}
	return nil
}

func (b *served) connections(m *message) {
	var connections []sandbox.Connection
	if t, ok := b.Sandbox.(sandbox.Traffic); ok {
		connections = t.Connections()
	}
	encodeJSON(&m.Encoder, connections)
}

func read(ctx context.Context, b *served, d *wire.Decoder, m *message) error {
	path, offset, limit := d.String(), d.Int(), d.Int()
	if limit > maxRead {
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
	}
	data, found, err := b.Files().Read(ctx, path, offset, limit)
	info := infoOf(found)
	m.Add(&info)
	m.bulk(data)
	return err
}

func write(ctx context.Context, b *served, d *wire.Decoder, _ *message) error {
	files, err := takeFiles(d)
	if err != nil {
		return err
	}
	return b.Files().Write(ctx, files...)
}

// snapshot makes a snapshot, answers with its number, and stays until the client closes it.
func (s *server) snapshot(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	b, err := s.box(d)
	if err != nil {
		return err
	}
	forkable, ok := b.Sandbox.(sandbox.Snapshotter)
	if !ok {
		return errMethod
	}
	snapshot, err := forkable.Snapshot(r.Context())
	if err != nil {
		return err
	}
	id := s.snapshots.add(&sealed{snapshot})
	var m message
	m.Bool(false)
	m.Int(id)
	writeMessage(w, &m)
	flush(w)
	<-r.Context().Done()
	if s.snapshots.remove(id) != nil {
		_ = snapshot.Close()
	}
	return nil
}

func kill(ctx context.Context, p sandbox.Process, d *wire.Decoder) error {
	return p.Kill(ctx, time.Duration(d.Int()))
}

func resize(ctx context.Context, p sandbox.Process, d *wire.Decoder) error {
	size := sandbox.TTY{Rows: uint16(d.Int()), Cols: uint16(d.Int())}
	t, ok := p.(sandbox.Terminal)
	if !ok {
		return errMethod
	}
	return t.Resize(ctx, size)
}
