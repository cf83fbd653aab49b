package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"trajgen/sandbox/internal/wire"
)

// read handles what comes in until the connection ends.
func (c *conn) read() {
	err := c.readAll()
	if err == io.EOF {
		err = errHungUp
	}
	c.lose(err)
}

var errHungUp = errors.New("the other end hung up")

func (c *conn) readAll() error {
	for {
		f, length, err := c.header()
		if err != nil {
			return err
		}
		c.progress.Add(1)
		if f.kind == frameData {
			if err := c.data(f.at, length); err != nil {
				return err
			}
			continue
		}
		if length > 0 {
			f.payload = make([]byte, length)
			if _, err := io.ReadFull(c.in, f.payload); err != nil {
				return cut(err)
			}
		}
		switch f.kind {
		case frameEnd:
			c.mu.Lock()
			s := c.sinks[f.at]
			delete(c.sinks, f.at)
			c.mu.Unlock()
			if s != nil {
				s.end(length > 0)
			}
		case frameCredit:
			err = c.credit(f)
		case framePing:
			c.send(framePong, f.at, nil)
		case framePong:
		default:
			err = c.handle(f)
		}
		if err != nil {
			return err
		}
	}
}

// header reads the beginning of a frame.
func (c *conn) header() (f frame, length int, err error) {
	header, err := c.in.Peek(headerSize)
	if err != nil {
		if len(header) > 0 {
			err = cut(err)
		}
		return f, 0, err
	}
	size := binary.BigEndian.Uint32(header)
	f.kind, f.at = header[4], address{channel: header[5], stream: binary.BigEndian.Uint64(header[6:])}
	limit := uint32(maxFrame)
	if f.kind == frameData {
		limit = maxChunk
	}
	if size > limit || f.kind == 0 || f.kind > framePong {
		return f, 0, fmt.Errorf("%w: a frame of kind %d with %d bytes", wire.ErrMalformed, f.kind, size)
	}
	_, err = c.in.Discard(headerSize)
	return f, int(size), err
}

// cut is what a stream that ends in the middle of a frame ended with.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

var chunks = sync.Pool{New: func() any { b := make([]byte, maxChunk); return &b }}

// data hands the bytes of a data frame on. What is not waited for any more was already on its way when it was said.
func (c *conn) data(at address, length int) error {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	p := (*chunk)[:length]
	if _, err := io.ReadFull(c.in, p); err != nil {
		return cut(err)
	}
	c.mu.Lock()
	s := c.sinks[at]
	c.mu.Unlock()
	if s == nil || length == 0 {
		return nil
	}
	return s.data(p)
}

func (c *conn) credit(f frame) error {
	d := wire.NewDecoder(f.payload)
	n := d.Int()
	if d.Err() != nil || n <= 0 || n > window {
		return fmt.Errorf("%w: a credit of %d bytes", wire.ErrMalformed, n)
	}
	c.mu.Lock()
	s := c.sources[f.at]
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.grant(int(n))
}
