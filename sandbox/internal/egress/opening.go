package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	portHTTP  = 80
	portHTTPS = 443

	// recordHandshake is the first byte of TLS.
	recordHandshake = 22
	// mostHello is how many bytes of a client are read to find the server's name.
	mostHello = 128 << 10
)

// sender copies the sandbox's data to the target, once that is connected.
type sender func(*proxied) error

// opening reads, for policies with names, the first data of the sandbox: one machine often serves many names, and the client
// names the one it wants there. On port 443 it must be TLS with a server name; on port 80 it must be HTTP, and every request is
// judged; on other ports, TLS is judged if it is TLS. What TLS encrypts is not seen.
func (c *proxied) opening() (sender, error) {
	if c.name == "" || c.server.config.Policy.Full {
		return plain(nil), nil
	}
	switch c.target.Port() {
	case portHTTPS:
		hello, err := c.hello(nil)
		return plain(hello), err
	case portHTTP:
		return c.requests()
	}
	return sniff, nil
}

// plain sends what was read before, and then the rest.
func plain(before []byte) sender {
	return func(c *proxied) error {
		if len(before) > 0 {
			if _, err := (&counter{c}).Write(before); err != nil {
				return err
			}
		}
		return c.copy(c.outer, c.inner, &c.record.sent)
	}
}

// sniff is for protocols in which the server may send first.
func sniff(c *proxied) error {
	var first [1]byte
	reader := &innerReader{connection: c}
	n, err := reader.Read(first[:])
	if n == 0 {
		if errors.Is(err, io.EOF) {
			return closeWrite(c.outer)
		}
		return err
	}
	before := first[:]
	if first[0] == recordHandshake {
		if before, err = c.hello(before); err != nil {
			return err
		}
	}
	return plain(before)(c)
}

// hello reads the beginning of TLS, after what was read before, and judges the name in it. It returns all that was read.
func (c *proxied) hello(before []byte) ([]byte, error) {
	listener := &recorder{Conn: c.inner, before: before}
	_ = c.inner.SetReadDeadline(time.Now().Add(c.server.config.Begin))
	var name string
	found := errors.New("the name was found")
	err := tls.Server(listener, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, found
	}}).Handshake()
	port := c.target.Port()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refusal(fmt.Sprintf("it did not begin TLS within %v", c.server.config.Begin))
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return nil, refusal("it ended before TLS began")
	case !errors.Is(err, found):
		return nil, refusal(fmt.Sprintf("it does not begin TLS, as it must on port %d: %v", port, err))
	case name == "":
		return nil, refusal("TLS names no server")
	}
	if reason := c.server.config.Policy.name(canonical(name), port); reason != "" {
		return nil, refusal(fmt.Sprintf("TLS names %q: %s", name, reason))
	}
	return listener.read.Bytes(), nil
}

// recorder records what is read and discards what is written.
type recorder struct {
	net.Conn
	before []byte
	read   bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	if r.read.Len() > mostHello {
		return 0, errors.New("too much was said")
	}
	n, err := copy(p, r.before), error(nil)
	if n > 0 {
		r.before = r.before[n:]
	} else {
		n, err = r.Conn.Read(p)
	}
	r.read.Write(p[:n])
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// innerReader reads from the sandbox while the connection is not idle.
type innerReader struct {
	connection *proxied
	until      time.Time // when reading must end; zero is never
	left       int64     // how many bytes may be read, when bounded
	bounded    bool
}

var errTooLong = errors.New("it is too long")

func (r *innerReader) Read(p []byte) (int, error) {
	if r.bounded {
		if r.left <= 0 {
			return 0, errTooLong
		}
		p = p[:min(int64(len(p)), r.left)]
	}
	for {
		until := r.until
		if until.IsZero() {
			// watchIdle closes a connection that is idle for too long.
			until = time.Now().Add(r.connection.server.config.Idle)
		}
		_ = r.connection.inner.SetReadDeadline(until)
		n, err := r.connection.inner.Read(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && r.until.IsZero() {
			continue
		}
		if n > 0 {
			r.connection.move()
			r.left -= int64(n)
		}
		return n, err
	}
}
