package relay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// magic begins what both ends say, before the version of what they speak.
const (
	magic   = "trajgen-relay\n"
	version = 1
)

// hello is the first thing that both ends say.
type hello struct {
	Failure    string             // why the server cannot serve
	Guarantees sandbox.Guarantees // the server's
	Patience   time.Duration      // the client's
}

// maxHello bounds the JSON of a hello.
const maxHello = 1 << 20

// greet says hello and reads that of the other end.
func (c *conn) greet(own hello) (other hello, err error) {
	said := make(chan error, 1)
	go func() { said <- c.sayHello(own) }() // the other end may do the same
	if other, err = c.hearHello(); err != nil {
		// The other end should learn of our version, if it listens.
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

func (c *conn) sayHello(own hello) error {
	body, err := json.Marshal(own)
	if err != nil {
		return err
	}
	e := wire.Encoder{Bytes: []byte(magic)}
	e.Int(version)
	e.Int(int64(len(body)))
	_, err = c.rw.Write(slices.Concat(e.Bytes, body))
	return err
}

func (c *conn) hearHello() (other hello, err error) {
	for i := range len(magic) {
		b, err := c.in.ReadByte()
		if err != nil {
			return other, fmt.Errorf("it ended at once: %w", cut(err))
		}
		if b != magic[i] {
			_ = c.in.UnreadByte()
			rest, _ := c.in.Peek(c.in.Buffered())
			return other, fmt.Errorf("it is no agent: it says %q", magic[:i]+string(rest[:min(len(rest), 200)]))
		}
	}
	spoken, err := binary.ReadVarint(c.in)
	if err != nil {
		return other, err
	}
	if spoken != version {
		return other, fmt.Errorf("it speaks version %d of the protocol, and this program version %d", spoken, version)
	}
	length, err := binary.ReadVarint(c.in)
	if err != nil {
		return other, err
	}
	if length < 0 || length > maxHello {
		return other, fmt.Errorf("%w: a greeting of %d bytes", wire.ErrMalformed, length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return other, cut(err)
	}
	if err := json.Unmarshal(body, &other); err != nil {
		return other, fmt.Errorf("%w: its greeting: %w", wire.ErrMalformed, err)
	}
	return other, nil
}

// guarantees are what a server has told of its backend. One that takes over a whole container finds out more when it does.
type guarantees struct {
	mu   sync.Mutex
	said []byte
}

func (g *guarantees) first(found sandbox.Guarantees) sandbox.Guarantees {
	g.said, _ = json.Marshal(found)
	return found
}

// news appends what has changed: all of it, or nothing.
func (g *guarantees) news(found sandbox.Guarantees, m *message) error {
	said, err := json.Marshal(found)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if bytes.Equal(said, g.said) {
		m.Blob(nil)
		return nil
	}
	g.said = said
	m.Blob(said)
	return nil
}

// decodeGuarantees takes what news appended; nil when nothing has changed.
func decodeGuarantees(d *wire.Decoder) (*sandbox.Guarantees, error) {
	said := d.Blob()
	if d.Err() != nil || len(said) == 0 {
		return nil, d.Err()
	}
	var g sandbox.Guarantees
	if err := json.Unmarshal(said, &g); err != nil {
		return nil, fmt.Errorf("%w: guarantees: %w", wire.ErrMalformed, err)
	}
	return &g, nil
}
