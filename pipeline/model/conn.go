package model

import (
	"context"
	"io"
	"net"
	"sync"
)

// conn is a connection that takes a request's body through a buffer which others use as well: net/http has the connection
// read the body, and net makes a buffer of the body's size each time.
type conn struct{ *net.TCPConn }

var copies = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (c conn) ReadFrom(r io.Reader) (int64, error) {
	buf := copies.Get().(*[32 << 10]byte)
	defer copies.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.TCPConn}, r, buf[:])
}

// dialing wraps what dial connects to.
func dialing(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}
