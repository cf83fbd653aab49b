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
	// mostHello is how much of what a client says is looked at to find the server's name.
	mostHello = 128 << 10
)

// sender copies what the sandbox says to the world, once that is connected.
type sender func(*carriage) error

// opening looks, where only some names may be reached, at what the sandbox says first: one machine often serves many names,
// and which of them is meant is said there. On port 443, it has to be TLS with the name of a server; on port 80, it has to
// be HTTP, and each request is looked at; on others, TLS is looked at if it is that. What is said inside of TLS stays
// unseen.
func (c *carriage) opening() (sender, error) {
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

// plain sends what was read before, and then what comes.
func plain(before []byte) sender {
	return func(c *carriage) error {
		if len(before) > 0 {
			if _, err := (&counter{c}).Write(before); err != nil {
				return err
			}
		}
		return c.copy(c.outer, c.inner, &c.record.sent)
	}
}

// sniff is for protocols in which the server may be the first to speak.
func sniff(c *carriage) error {
	var first [1]byte
	reader := &innerReader{carriage: c}
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

// hello reads the beginning of TLS, of which some may have been read before, and judges the name in it. It returns all that
// was read.
func (c *carriage) hello(before []byte) ([]byte, error) {
	listener := &eavesdropper{Conn: c.inner, before: before}
	_ = c.inner.SetReadDeadline(time.Now().Add(c.server.config.Begin))
	var name string
	heard := errors.New("heard")
	err := tls.Server(listener, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, heard
	}}).Handshake()
	port := c.target.Port()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refusal(fmt.Sprintf("it did not begin TLS within %v", c.server.config.Begin))
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return nil, refusal("it ended before TLS began")
	case !errors.Is(err, heard):
		return nil, refusal(fmt.Sprintf("it does not begin TLS, as it must on port %d: %v", port, err))
	case name == "":
		return nil, refusal("TLS names no server")
	}
	if reason := c.server.config.Policy.name(canonical(name), port); reason != "" {
		return nil, refusal(fmt.Sprintf("TLS names %q: %s", name, reason))
	}
	return listener.heard.Bytes(), nil
}

// eavesdropper keeps what is read and says nothing.
type eavesdropper struct {
	net.Conn
	before []byte
	heard  bytes.Buffer
}

func (e *eavesdropper) Read(p []byte) (int, error) {
	if e.heard.Len() > mostHello {
		return 0, errors.New("too much was said")
	}
	n, err := copy(p, e.before), error(nil)
	if n > 0 {
		e.before = e.before[n:]
	} else {
		n, err = e.Conn.Read(p)
	}
	e.heard.Write(p[:n])
	return n, err
}

func (e *eavesdropper) Write(p []byte) (int, error) { return len(p), nil }

// innerReader reads what the sandbox says, for as long as the connection is not idle.
type innerReader struct {
	carriage *carriage
	until    time.Time // when reading ends; zero is never
	left     int64     // how much may be read, when bounded
	bounded  bool
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
			// Whether it is idle for too long is seen elsewhere, and closes the connection.
			until = time.Now().Add(r.carriage.server.config.Idle)
		}
		_ = r.carriage.inner.SetReadDeadline(until)
		n, err := r.carriage.inner.Read(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && r.until.IsZero() {
			continue
		}
		if n > 0 {
			r.carriage.move()
			r.left -= int64(n)
		}
		return n, err
	}
}
