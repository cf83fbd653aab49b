package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// ServeOptions are what a backend is served with. The zero value works.
type ServeOptions struct {
	// Logger is told when the other end does not come back. Nil is silent.
	Logger *slog.Logger
}

// server is the end that has the backend.
type server struct {
	conn    *conn
	backend sandbox.Backend
	watch   watch
	life    context.Context // ends with the connection
	said    guarantees
	bye     atomic.Bool // the client has said that it goes

	mu        sync.Mutex // guards what follows
	boxes     map[uint64]*served
	commands  map[uint64]*command
	snapshots map[uint64]sandbox.Snapshot
	calls     map[uint64]context.CancelCauseFunc // those that are answered at the moment
	running   sync.WaitGroup

	ending   sync.Once
	closeErr error
}

// served is a sandbox that was opened.
type served struct {
	sandbox.Sandbox
	sockets sockets
	shut    bool // guarded by the server's lock
}

// silence is how many times the client's patience it may be silent itself: it asks for signs of life all the time.
const silence = 10

// Serve offers a backend at the other end of rw, for one Client, until that closes it or rw ends. Then it closes the
// backend, which ends everything that was started, and rw.
func Serve(rw io.ReadWriteCloser, backend sandbox.Backend, opts ServeOptions) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	life, end := context.WithCancelCause(context.Background())
	s := &server{
		conn: newConn(rw), backend: backend, life: life, boxes: map[uint64]*served{}, commands: map[uint64]*command{},
		snapshots: map[uint64]sandbox.Snapshot{}, calls: map[uint64]context.CancelCauseFunc{},
	}
	s.conn.handle = s.handle
	client, err := s.conn.greet(hello{Guarantees: s.said.first(backend.Guarantees())})
	if err == nil {
		s.watch.start(s.conn, silence*max(client.Patience, time.Second), false)
		go s.conn.write()
		go s.conn.read()
		<-s.conn.gone
		s.watch.stop()
		err = s.conn.lost()
	} else {
		_ = rw.Close()
	}
	end(fmt.Errorf("the connection ended: %w", err))
	if err == errHungUp || s.bye.Load() {
		err = nil
	}
	err = errors.Join(err, s.end())
	if !s.settled() {
		err = errors.Join(err, errors.New("calls of the backend did not return"))
	}
	return err
}

// settleTime bounds how long Serve waits for calls of a backend that is closed.
const settleTime = 10 * time.Second

func (s *server) settled() bool {
	settled := make(chan struct{})
	go func() {
		s.running.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return true
	case <-time.After(settleTime):
		return false
	}
}

// end ends all sandboxes.
func (s *server) end() error {
	s.ending.Do(func() { s.closeErr = s.backend.Close() })
	return s.closeErr
}

// handle is called by the read loop.
func (s *server) handle(f frame) error {
	id := f.at.stream
	switch f.kind {
	case frameCall:
		ctx, cancel := context.WithCancelCause(s.life)
		s.mu.Lock()
		_, used := s.calls[id]
		s.calls[id] = cancel
		s.mu.Unlock()
		if used {
			return fmt.Errorf("%w: two calls of one number", wire.ErrMalformed)
		}
		return s.conn.hear(f, longestCall, func(method int64, d *wire.Decoder) {
			s.running.Go(func() { s.serve(ctx, id, method, d) })
		}, nil)
	case frameCancel:
		s.mu.Lock()
		cancel := s.calls[id]
		s.mu.Unlock()
		if cancel == nil {
			return nil
		}
		cancel(errCancelled)
		if s.conn.detach(f.at) {
			s.running.Go(func() { s.answer(s.life, id, nil, errCancelled) }) // it had not come as a whole
		}
		return nil
	case frameForget:
		s.mu.Lock()
		delete(s.commands, id)
		s.mu.Unlock()
		return nil
	}
	return fmt.Errorf("%w: a frame of kind %d", wire.ErrMalformed, f.kind)
}

var errCancelled = errors.New("the caller gave up")

// serve answers a call.
func (s *server) serve(ctx context.Context, id uint64, method int64, d *wire.Decoder) {
	if method == methodStart {
		s.start(ctx, id, d)
		return
	}
	var m message
	m.Bool(false) // no error
	err := errMethod
	if method > 0 && int(method) < len(methods) && methods[method] != nil {
		err = methods[method](s, ctx, id, d, &m)
	}
	if err == nil && d.Err() != nil {
		err = d.Err()
	}
	if err == nil && m.length() > longestAnswer(method) {
		err = fmt.Errorf("answer with %d bytes: %w", m.length(), syscall.EMSGSIZE)
	}
	s.answer(ctx, id, &m, err)
}

var errMethod = fmt.Errorf("%w: no such method", wire.ErrMalformed)

// answer answers a call with a message, or an error.
func (s *server) answer(ctx context.Context, id uint64, m *message, err error) {
	if err != nil {
		m = &message{}
		encodeError(&m.Encoder, err)
	}
	if begun, err := s.conn.say(s.life, ctx, frameReply, id, 0, m); begun && err != nil {
		s.conn.send(frameEnd, address{id, channelBody}, []byte{1})
	}
	s.mu.Lock()
	cancel := s.calls[id]
	delete(s.calls, id)
	s.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}
