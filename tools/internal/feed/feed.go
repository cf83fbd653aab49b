// Package feed is the standard input of a process while others write to it.
package feed

import (
	"errors"
	"io"
	"sync"
)

// Why Write fails.
var (
	ErrClosed = errors.New("the input is closed")
	ErrFull   = errors.New("the process does not read its input")
)

// Feed is a process's standard input: it buffers writes until the process reads them, so that a process that does not read
// blocks no writer. It is safe for concurrent use.
type Feed struct {
	most int

	mu      sync.Mutex // guards the rest
	more    *sync.Cond
	waiting []byte
	closed  bool
}

// New makes a feed that buffers up to most bytes.
func New(most int) *Feed {
	f := &Feed{most: most}
	f.more = sync.NewCond(&f.mu)
	return f
}

// Read blocks until there is data, or the feed is closed.
func (f *Feed) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) == 0 && !f.closed {
		f.more.Wait()
	}
	if len(f.waiting) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.waiting)
	if f.waiting = f.waiting[n:]; len(f.waiting) == 0 {
		f.waiting = nil
	}
	return n, nil
}

// Write never blocks: it takes all or, with ErrClosed or ErrFull, nothing.
func (f *Feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return 0, ErrClosed
	case len(f.waiting)+len(p) > f.most:
		return 0, ErrFull
	}
	f.waiting = append(f.waiting, p...)
	f.more.Broadcast()
	return len(p), nil
}

// Close ends the input after the buffered data.
func (f *Feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.more.Broadcast()
	return nil
}
