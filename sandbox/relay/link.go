package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what is on its way.
const (
	maxFrame = 16 << 10  // bytes that others on the stream have to wait for
	window   = 512 << 10 // bytes that may be on their way, or wait for a slow reader, of each request and each answer
)

// link is the byte stream as the connection that HTTP/2 is spoken on.
type link struct {
	rw io.ReadWriteCloser
	in io.Reader // what the greeting has left, and the rest

	gone     chan struct{} // closed when the connection has ended
	progress atomic.Int64  // changes when the other end has shown that it lives

	mu     sync.Mutex // guards what follows
	reason error      // why it ended
}

func newLink(rw io.ReadWriteCloser) *link {
	return &link{rw: rw, in: rw, gone: make(chan struct{})}
}

var (
	errHungUp = errors.New("the other end hung up")
	errBroken = errors.New("the other end broke the protocol")
)

// lose ends the connection. The first reason stands.
func (l *link) lose(reason error) {
	l.mu.Lock()
	if l.reason != nil {
		l.mu.Unlock()
		return
	}
	l.reason = reason
	close(l.gone)
	l.mu.Unlock()
	_ = l.rw.Close()
}

// lost is why the connection ended, nil while it has not.
func (l *link) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if n > 0 {
		l.progress.Add(1)
	}
	switch err {
	case nil:
	case io.EOF:
		l.lose(errHungUp)
	default:
		l.lose(fmt.Errorf("read: %w", err))
	}
	return n, err
}

func (l *link) Write(p []byte) (int, error) {
	n, err := l.rw.Write(p)
	if err != nil {
		l.lose(fmt.Errorf("write: %w", err))
	} else if n >= maxFrame {
		l.progress.Add(1) // a peer that is stuck takes no more than fits into a pipe
	}
	return n, err
}

// Close is called by HTTP/2 alone, when it does not understand what it reads.
func (l *link) Close() error {
	l.lose(errBroken)
	return nil
}

func (l *link) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (l *link) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }
