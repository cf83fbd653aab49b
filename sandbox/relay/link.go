package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

	patience time.Duration // how long the peer may be silent, as config has it
	lastRead atomic.Int64  // when the peer said something last

	life context.Context // ends with the connection
	end  context.CancelCauseFunc
}

func newLink(rw io.ReadWriteCloser, patience time.Duration) *link {
	l := &link{rw: rw, in: rw, patience: patience}
	l.life, l.end = context.WithCancelCause(context.Background())
	return l
}

// config has HTTP/2 ask a silent peer for a sign of life when half of the patience is over, and close the connection when
// all of it is.
func (l *link) config() http.HTTP2Config {
	return http.HTTP2Config{
		MaxReadFrameSize: maxFrame, MaxReceiveBufferPerStream: window,
		SendPingTimeout: l.patience / 2, PingTimeout: l.patience / 2,
	}
}

var (
	errHungUp = errors.New("the other end hung up")
	errBroken = errors.New("the other end broke the protocol")
)

// lose ends the connection. The first reason stays.
func (l *link) lose(reason error) {
	l.end(reason)
	_ = l.rw.Close()
}

// lost returns why the connection ended, or nil while it has not.
func (l *link) lost() error { return context.Cause(l.life) }

func (l *link) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if n > 0 {
		l.lastRead.Store(time.Now().UnixNano())
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
	}
	return n, err
}

// HTTP/2 calls Close when it does not understand what it reads, or reads nothing.
func (l *link) Close() error {
	l.broken(errBroken)
	return nil
}

// broken ends the connection for an error, or for the silence that led to it.
func (l *link) broken(err error) {
	if time.Since(time.Unix(0, l.lastRead.Load())) > l.patience/2 {
		err = fmt.Errorf("the other end said nothing for %v", l.patience)
	}
	l.lose(err)
}

func (l *link) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (l *link) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }
