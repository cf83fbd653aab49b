package model

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// conn is a connection that copies a request's body through a pooled buffer: net/http calls ReadFrom, and net would make a new
// buffer of the body's size each time.
type conn struct{ *net.TCPConn }

var copies = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (c conn) ReadFrom(r io.Reader) (int64, error) {
	buf := copies.Get().(*[32 << 10]byte)
	defer copies.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.TCPConn}, r, buf[:])
}

// dialing wraps the connections of dial, and dials Unix sockets, whose host encodes their path.
func dialing(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if path := socketOf(addr); path != "" {
			network, addr = "unix", path
		}
		c, err := dial(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			return conn{tcp}, err
		}
		return c, err
	}
}

// sockets is the domain of the hosts that stand for Unix sockets: net/http keeps connections by host.
const sockets = ".unix.invalid"

func socketHost(path string) string { return hex.EncodeToString([]byte(path)) + sockets }

// socketOf is the path of the socket that a host stands for, or "".
func socketOf(host string) string {
	encoded, _, ok := strings.Cut(host, sockets)
	path, err := hex.DecodeString(encoded)
	if !ok || err != nil {
		return ""
	}
	return string(path)
}

// placed is the HTTP client that go-openai calls for one exchange with an endpoint.
type placed struct {
	*doer
	at place
	x  *exchange
}

// Do adds to the URL what go-openai cannot: the query, and the host of a socket.
func (p placed) Do(req *http.Request) (*http.Response, error) {
	req.URL.RawQuery = p.at.query
	if p.at.socket {
		req.Host = "localhost"
	}
	resp, err := p.doer.do(req, p.x)
	if failed, ok := errors.AsType[*url.Error](err); ok && p.at.socket {
		failed.URL = p.at.name
	}
	return resp, err
}
