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
	bye     atomic.Bool // the client has said goodbye

	mu      sync.Mutex // guards what follows
	over    bool       // the connection has ended
	running sync.WaitGroup

	boxes     table[*served]
	snapshots table[sandbox.Snapshot]

	end func() error // closes the backend, once
}

// served is an open sandbox.
type served struct {
	sandbox.Sandbox
	commands table[*started]
}

// table numbers objects that the client names in later requests. Numbers begin at 1.
type table[T any] struct {
	last atomic.Int64
	all  sync.Map
}

func (t *table[T]) add(v T) int64 {
	id := t.last.Add(1)
	t.all.Store(id, v)
	return id
}

// find returns nil when there is none, or no longer.
func (t *table[T]) find(id int64) (found T) {
	v, _ := t.all.Load(id)
	found, _ = v.(T)
	return found
}

// remove returns the removed object, or nil.
func (t *table[T]) remove(id int64) (removed T) {
	v, _ := t.all.LoadAndDelete(id)
	removed, _ = v.(T)
	return removed
}

// silence is how long the client may be silent.
const silence = 10 * time.Minute

// Serve offers a backend on rw to one Client, until the client closes it or rw ends. Then it closes the backend, which ends
// everything that was started, and rw. The logger receives requests that panic.
func Serve(rw io.ReadWriteCloser, backend sandbox.Backend, logger *slog.Logger) error {
	s := &server{link: newLink(rw, silence), backend: backend, end: sync.OnceValue(backend.Close)}
	if _, err := s.link.greet(hello{Guarantees: backend.Guarantees()}); err == nil {
		go s.serve(logger)
	} else {
		s.link.lose(err)
	}
	<-s.link.life.Done()
	err := s.link.lost()
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
	config := s.link.config()
	config.MaxConcurrentStreams, config.MaxReceiveBufferPerConnection = 1<<20, 1<<30
	h := &http.Server{
		Handler: s, Protocols: protocols(), HTTP2: &config, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return s.link.life },
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
		<-l.link.life.Done()
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
		encodeError(&m, err)
		writeMessage(w, &m)
	}
}

// call answers a request with one message.
func (s *server) call(w http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	var m message
	m.Bool(false) // no error
	method := r.URL.Path
	if err := s.do(r.Context(), method, d, &m); err != nil {
		return err
	}
	if d.Err() != nil {
		return d.Err()
	}
	if len(m.Bytes) > longestAnswer(method) {
		return fmt.Errorf("answer with %d bytes: %w", len(m.Bytes), syscall.EMSGSIZE)
	}
	writeMessage(w, &m)
	return nil
}

// writeMessage answers with a message. A client that has gone does not get it.
func writeMessage(w http.ResponseWriter, m *message) {
	said := framed(m)
	_, _ = said.WriteTo(w)
}

// flush sends the client at once what was written so far.
func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }
