package relay

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

var (
	errMethod = fmt.Errorf("%w: no such method", wire.ErrMalformed)
	errShut   = fmt.Errorf("it is closed: %w", sandbox.ErrGone)
)

// do writes the one answer of a request to m.
func (s *server) do(ctx context.Context, method string, d *wire.Decoder, m *message) error {
	switch method {
	case methodBye:
		s.bye.Store(true)
		return s.end()
	case methodShut:
		b := s.boxes.remove(d.Int())
		if b == nil {
			return errShut
		}
		err := b.Close()
		b.connections(m)
		return err
	case methodDrop:
		snapshot := s.snapshots.remove(d.Int())
		if snapshot == nil {
			return errShut
		}
		return snapshot.Close()
	}
	b, err := s.box(d)
	if err != nil {
		return err
	}
	switch method {
	case methodForget:
		b.commands.remove(d.Int())
		return nil
	case methodKill, methodResize:
		if c := b.commands.find(d.Int()); c != nil { // or the client has forgotten it
			return c.do(ctx, method, d)
		}
		return nil
	case methodKillAll:
		return b.KillAll(ctx)
	case methodTraffic:
		b.connections(m)
		return nil
	}
	return b.doFiles(ctx, method, d, m)
}

func (c *started) do(ctx context.Context, method string, d *wire.Decoder) error {
	if method == methodKill {
		return c.process.Kill(ctx, time.Duration(d.Int()))
	}
	size := sandbox.TTY{Rows: uint16(d.Int()), Cols: uint16(d.Int())}
	if t, ok := c.process.(sandbox.Terminal); ok {
		return t.Resize(ctx, size)
	}
	return errMethod
}

func (b *served) doFiles(ctx context.Context, method string, d *wire.Decoder, m *message) error {
	switch method {
	case methodStat:
		found, err := b.Files().Stat(ctx, d.String())
		m.Add(new(infoOf(found)))
		return err
	case methodRead:
		path, offset, limit := d.String(), d.Int(), d.Int()
		if limit > maxRead {
			return &fs.PathError{Op: "read", Path: path, Err: syscall.EFBIG}
		}
		data, found, err := b.Files().Read(ctx, path, offset, limit)
		m.Add(new(infoOf(found)))
		m.Blob(data)
		return err
	case methodWrite:
		files, err := takeFiles(d)
		if err != nil {
			return err
		}
		return b.Files().Write(ctx, files...)
	case methodList:
		path := d.String()
		found, err := b.Files().List(ctx, path)
		infos := make([]guest.Info, len(found))
		for i := range found {
			infos[i] = infoOf(found[i])
		}
		wire.List(m.Coder(), &infos, (*guest.Info).Fields)
		if err == nil && len(m.Bytes) > maxList {
			return &fs.PathError{Op: "list", Path: path, Err: syscall.EMSGSIZE}
		}
		return err
	case methodRemove:
		return b.Files().Remove(ctx, d.Strings()...)
	}
	return errMethod
}

// box finds the sandbox that a message names.
func (s *server) box(d *wire.Decoder) (*served, error) {
	b := s.boxes.find(d.Int())
	if b == nil {
		return nil, errShut
	}
	return b, nil
}

// open opens a sandbox, answers with its number, and stays until the client closes it.
func (s *server) open(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	from := d.Int()
	var spec sandbox.Spec
	if err := decodeJSON(d, &spec); err != nil {
		return err
	}
	if from != 0 {
		if spec.From = s.snapshots.find(from); spec.From == nil {
			return fmt.Errorf("open sandbox %s: its snapshot is closed", spec.ID)
		}
	}
	sb, err := s.backend.Open(r.Context(), spec)
	if err != nil {
		return err
	}
	_, snapshots := sb.(sandbox.Snapshotter)
	_, traffic := sb.(sandbox.Traffic)
	id := s.boxes.add(&served{Sandbox: sb})
	m := made(id)
	encodeJSON(m, opened{sb.Layout(), snapshots, traffic, s.backend.Guarantees()})
	answerAtOnce(w, m)
	<-r.Context().Done()
	if s.boxes.remove(id) != nil {
		_ = sb.Close()
	}
	return nil
}

// made begins the answer to a request that has made an object.
func made(id int64) *message {
	var m message
	m.Bool(false) // no error
	m.Int(id)
	return &m
}

func answerAtOnce(w http.ResponseWriter, m *message) {
	writeMessage(w, m)
	flush(w)
}

func (b *served) connections(m *message) {
	var connections []sandbox.Connection
	if t, ok := b.Sandbox.(sandbox.Traffic); ok {
		connections = t.Connections()
	}
	encodeJSON(m, connections)
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
	id := s.snapshots.add(snapshot)
	answerAtOnce(w, made(id))
	<-r.Context().Done()
	if s.snapshots.remove(id) != nil {
		_ = snapshot.Close()
	}
	return nil
}
