package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// Both sides say first, as a line of JSON, which protocol they speak.
const (
	protocol = "trajgen-relay"
	version  = 3
)

// hello is what both sides say first.
type hello struct {
	Protocol   string
	Version    int
	Failure    string             // why the server cannot serve
	Guarantees sandbox.Guarantees // the server's
}

// maxHello bounds a hello, in bytes.
const maxHello = 1 << 20

// greet sends hello and reads the peer's.
func (l *link) greet(own hello) (other hello, err error) {
	own.Protocol, own.Version = protocol, version
	said := make(chan error, 1)
	go func() { said <- json.NewEncoder(l.rw).Encode(own) }() // the peer may send its own first
	if other, err = l.readHello(); err != nil {
		// Send our version before failing, so that a peer that reads it can report it.
		select {
		case <-said:
		case <-time.After(time.Second):
		}
		return other, err
	}
	if err := <-said; err != nil {
		return other, err
	}
	if other.Failure != "" {
		return other, errors.New(other.Failure)
	}
	return other, nil
}

func (l *link) readHello() (other hello, err error) {
	var said bytes.Buffer
	limited := &io.LimitedReader{R: l.rw, N: maxHello}
	in := json.NewDecoder(io.TeeReader(limited, &said))
	err = in.Decode(&other)
	switch {
	case err != nil && limited.N <= 0:
		return other, fmt.Errorf("%w: a greeting of more than %d bytes", wire.ErrMalformed, maxHello)
	case err == io.EOF:
		return other, fmt.Errorf("it ended at once: %w", cut(err))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return other, err
	case err != nil || other.Protocol != protocol:
		return other, fmt.Errorf("it is not an agent: it says %.200q", said.Bytes())
	case other.Version != version:
		return other, fmt.Errorf("it speaks version %d of the protocol, and this program version %d", other.Version, version)
	}
	l.lastRead.Store(time.Now().UnixNano())
	l.in = io.MultiReader(in.Buffered(), l.rw)
	_, err = io.ReadFull(l.in, make([]byte, 1)) // the end of the line
	return other, err
}

// cut returns the error of a stream that ended in the middle of something.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
