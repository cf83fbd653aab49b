package sandbox

import (
	"bytes"
	"sync"
)

// Capture keeps the head and the tail of what is written to it and counts the rest. It is safe for concurrent use.
type Capture struct {
	head, tail int
	limit      int64
	over       func()

	mu    sync.Mutex
	first []byte
	last  []byte // a ring buffer once it is full
	next  int    // where the next byte goes in the ring
	total int64
}

// NewCapture keeps the first head and the last tail bytes.
func NewCapture(head, tail int) *Capture {
	return &Capture{head: head, tail: tail}
}

// Write takes everything and never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	before := c.total
	c.total += int64(len(p))
	rest := p
	if room := c.head - len(c.first); room > 0 {
		n := min(room, len(rest))
		c.first = append(c.first, rest[:n]...)
		rest = rest[n:]
	}
	c.keep(rest)
	flooded := c.limit > 0 && before <= c.limit && c.total > c.limit
	c.mu.Unlock()
	if flooded && c.over != nil {
		c.over()
	}
	return len(p), nil
}

func (c *Capture) keep(p []byte) {
	if len(p) > c.tail {
		p = p[len(p)-c.tail:]
	}
	if room := c.tail - len(c.last); room > 0 {
		n := min(room, len(p))
		c.last = append(c.last, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.last[c.next:], p)
		c.next = (c.next + n) % c.tail
		p = p[n:]
	}
}

// Head returns the kept beginning.
func (c *Capture) Head() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.first)
}

// Tail returns the kept end, which follows Head after Omitted bytes.
func (c *Capture) Tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring()
}

func (c *Capture) ring() []byte {
	return append(bytes.Clone(c.last[c.next:]), c.last[:c.next]...)
}

// Bytes returns what was kept, head and tail joined.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(bytes.Clone(c.first), c.ring()...)
}

// Total is how many bytes were written.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Omitted is how many bytes between head and tail were not kept.
func (c *Capture) Omitted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total - int64(len(c.first)) - int64(len(c.last))
}
