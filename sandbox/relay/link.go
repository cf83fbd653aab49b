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

// Bounds of data in flight.
const (
	maxFrame = 16 << 10  // bytes of a frame, for which other requests on the stream wait
	window   = 512 << 10 // unread bytes in flight, of each request and each answer
)

// link is the byte stream as the connection under HTTP/2.
type link struct {
	rw io.ReadWriteCloser
	in io.Reader // what the greeting did not use of the stream, and the rest

	gone     chan struct{} // closed when the connection has ended
	progress atomic.Int64  // changes when the peer shows that it lives

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

// lose ends the connection. The first reason stays.
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

// lost returns why the connection ended, or nil while it has not.
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
		l.progress.Add(1) // counts as a sign of life: with a stuck peer, writes block once the pipe is full
	}
	return n, err
}

// HTTP/2 calls Close only when it does not understand what it reads.
func (l *link) Close() error {
	l.lose(errBroken)
	return nil
}

func (l *link) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (l *link) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }
