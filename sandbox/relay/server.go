package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// server is the side with the backend.
type server struct {
	link    *link
	backend sandbox.Backend
	life    context.Context // ends with the connection
	bye     atomic.Bool     // the client has said goodbye

	mu      sync.Mutex // guards what follows
	over    bool       // the connection has ended
	running sync.WaitGroup

	boxes     table[served]
	snapshots table[sealed]

	ending   sync.Once
	closeErr error
}

// served is an open sandbox.
type served struct {
	sandbox.Sandbox
	commands table[started]
}

// sealed is a snapshot.
type sealed struct{ sandbox.Snapshot }

// table numbers objects that the client names in later requests. Numbers begin at 1.
type table[T any] struct {
	mu   sync.Mutex
	last int64
	all  map[int64]*T
}

func (t *table[T]) add(v *T) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[int64]*T{}
	}
	t.last++
	t.all[t.last] = v
	return t.last
}

// find returns nil when there is none, or no longer.
func (t *table[T]) find(id int64) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// remove returns the removed object, or nil.
func (t *table[T]) remove(id int64) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.all[id]
	delete(t.all, id)
	return v
}

// silence multiplies the client's patience: the client itself, which pings all the time, may be silent that long.
const silence = 10

// Serve offers a backend on rw to one Client, until the client closes it or rw ends. Then it closes the backend, which ends
// everything that was started, and rw. The logger receives requests that panic.
func Serve(rw io.ReadWriteCloser, backend sandbox.Backend, logger *slog.Logger) error {
	life, end := context.WithCancelCause(context.Background())
	s := &server{link: newLink(rw), backend: backend, life: life}
	client, err := s.link.greet(hello{Guarantees: backend.Guarantees()})
	if err == nil {
		go s.serve(logger)
		s.link.watch(silence*max(client.Patience, time.Second), nil)
		err = s.link.lost()
	} else {
		_ = rw.Close()
	}
	end(fmt.Errorf("the connection ended: %w", err))
	if err == errHungUp || s.bye.Load() {
		err = nil
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	err = errors.Join(err, s.end())
	if !s.settled() {
		err = errors.Join(err, errors.New("calls of the backend did not return"))
	}
	return err
}

// serve serves the connection. The receive buffer of all requests together is larger than any client needs: a request with a
// slow reader must not hold up the others.
func (s *server) serve(logger *slog.Logger) {
	h := &http.Server{
		Handler: s, Protocols: protocols(), ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return s.life },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1 << 20, MaxReadFrameSize: maxFrame,
			MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: 1 << 30,
		},
	}
	_ = h.Serve(&listener{link: s.link})
}

// listener accepts one connection.
type listener struct {
	link     *link
	accepted bool
}

func (l *listener) Accept() (net.Conn, error) {
	if l.accepted {
		<-l.link.gone
		return nil, net.ErrClosed
	}
	l.accepted = true
	return l.link, nil
}

func (l *listener) Addr() net.Addr { return l.link.LocalAddr() }

func (l *listener) Close() error { return nil }

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

// end closes the backend, once.
func (s *server) end() error {
	s.ending.Do(func() { s.closeErr = s.backend.Close() })
	return s.closeErr
}

// ServeHTTP handles one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	method := r.URL.Path
	d, err := readMessage(r.Body, longestCall(method))
	if err == nil {
		switch method {
		case methodOpen:
			err = s.open(w, r, d)
		case methodStart:
			err = s.start(w, r, d)
		case methodSnapshot:
			err = s.snapshot(w, r, d)
		case methodSend:
			err = s.send(w, r, d)
		case methodReceive:
			err = s.receive(w, r, d)
		default:
			err = s.call(w, r, d)
		}
	}
	if err != nil {
		var m message
		encodeError(&m.Encoder, err)
		writeMessage(w, &m)
	}
}

// call answers a request with one message.
func (s *server) call(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	var m message
	m.Bool(false) // no error
	do := methods[r.URL.Path]
	if do == nil {
		return errMethod
	}
	if err := do(s, r.Context(), d, &m); err != nil {
		return err
	}
	if d.Err() != nil {
		return d.Err()
	}
	if m.length() > longestAnswer(r.URL.Path) {
		return fmt.Errorf("answer with %d bytes: %w", m.length(), syscall.EMSGSIZE)
	}
	writeMessage(w, &m)
	return nil
}

var errMethod = fmt.Errorf("%w: no such method", wire.ErrMalformed)

// writeMessage answers with a message. A client that has gone does not get it.
func writeMessage(w http.ResponseWriter, m *message) {
	said := m.framed()
	_, _ = said.WriteTo(w)
}

// flush sends the client at once what was written so far.
func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }
