package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/wire"
)

// carry connects a local socket with a command's, each direction in a request of its own.
func (b *remote) carry(id int64) (net.Conn, error) {
	outer, file, err := command.SocketPair()
	if err != nil {
		return nil, err
	}
	inner, err := command.Connection(file)
	if err != nil {
		return nil, errors.Join(err, outer.Close())
	}
	m := b.about()
	m.Int(id)
	stop := context.AfterFunc(b.commands, func() { _ = inner.Close() })
	var both sync.WaitGroup
	both.Go(func() {
		if body, err := b.client.ask(b.commands, methodSend, m, io.NopCloser(inner)); err == nil {
			_ = body.Close()
		}
		_ = inner.CloseRead() // later writes of the caller fail
	})
	both.Go(func() {
		body, err := b.client.ask(b.commands, methodReceive, m, nil)
		if err == nil {
			_, _ = io.Copy(inner, body)
			_ = body.Close() // so the server closes the command's socket when the caller has hung up
		}
		_ = inner.CloseWrite()
	})
	go func() {
		both.Wait()
		stop()
		_ = inner.Close()
	}()
	return outer, nil
}

// send copies the rest of the request to a command's socket.
func (s *server) send(_ http.ResponseWriter, r *http.Request, d *wire.Decoder) error {
	c := s.connected(d)
	if c == nil {
		return nil
	}
	socket := c.process.Socket()
	defer c.halfOver()
	chunk := pieces.Get().(*[]byte)
	defer pieces.Put(chunk)
	for {
		n, err := r.Body.Read(*chunk)
		if _, written := socket.Write((*chunk)[:n]); written != nil {
			return nil // the command has hung up; the client still reads what it wrote
		}
		if half, ok := socket.(interface{ CloseWrite() error }); err == io.EOF && ok {
			return half.CloseWrite()
		}
		if err != nil {
			return socket.Close()
		}
	}
}

// receive answers with what a command writes to its socket.
func (s *server) receive(w http.ResponseWriter, _ *http.Request, d *wire.Decoder) error {
	c := s.connected(d)
	if c == nil {
		return nil
	}
	socket := c.process.Socket()
	defer c.halfOver()
	flush(w)
	chunk := pieces.Get().(*[]byte)
	defer pieces.Put(chunk)
	for {
		n, err := socket.Read(*chunk)
		if _, written := w.Write((*chunk)[:n]); written != nil {
			_ = socket.Close() // the caller has hung up
			return nil
		}
		flush(w)
		if err != nil {
			return nil
		}
	}
}

// connected finds the command that a message names, if it has a socket.
func (s *server) connected(d *wire.Decoder) *started {
	if b, err := s.box(d); err == nil {
		if c := b.commands.find(d.Int()); c != nil && c.process.Socket() != nil {
			return c
		}
	}
	return nil
}

// halfOver closes the socket when both directions have ended.
func (c *started) halfOver() {
	if c.halves.Add(1) == 2 {
		_ = c.process.Socket().Close()
	}
}
