package relay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// magic begins the line that both sides send first, before the protocol's version and a hello.
const (
	magic   = "trajgen-relay "
	version = 3
)

// hello is the first message of both sides.
type hello struct {
	Failure    string             // why the server cannot serve
	Guarantees sandbox.Guarantees // the server's
	Patience   time.Duration      // the client's
}

// maxHello bounds a hello, in bytes.
const maxHello = 1 << 20

// greet sends hello and reads the peer's.
func (l *link) greet(own hello) (other hello, err error) {
	said := make(chan error, 1)
	go func() { said <- l.writeHello(own) }() // the peer may send its own first
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

func (l *link) writeHello(own hello) error {
	body, err := json.Marshal(own)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.rw, "%s%d %s\n", magic, version, body)
	return err
}

func (l *link) readHello() (other hello, err error) {
	limited := &io.LimitedReader{R: l.rw, N: maxHello}
	in := bufio.NewReader(limited)
	for i := range len(magic) {
		b, err := in.ReadByte()
		if err != nil {
			return other, fmt.Errorf("it ended at once: %w", cut(err))
		}
		if b != magic[i] {
			_ = in.UnreadByte()
			rest, _ := in.Peek(in.Buffered())
			return other, fmt.Errorf("it is not an agent: it says %q", magic[:i]+string(rest[:min(len(rest), 200)]))
		}
	}
	line, err := in.ReadBytes('\n')
	if err != nil && limited.N <= 0 {
		err = fmt.Errorf("%w: a greeting of more than %d bytes", wire.ErrMalformed, maxHello)
	}
	if err != nil {
		return other, cut(err)
	}
	spoken, body, _ := bytes.Cut(line, []byte(" "))
	if string(spoken) != fmt.Sprint(version) {
		return other, fmt.Errorf("it speaks version %.20s of the protocol, and this program version %d", spoken, version)
	}
	if err := json.Unmarshal(body, &other); err != nil {
		return other, fmt.Errorf("%w: its greeting: %w", wire.ErrMalformed, err)
	}
	rest, _ := in.Peek(in.Buffered())
	l.in = io.MultiReader(bytes.NewReader(rest), l.rw)
	return other, nil
}

// cut returns the error of a stream that ended in the middle of something.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
