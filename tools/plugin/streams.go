package plugin

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxInput is how many bytes may wait for a plugin to read them.
const maxInput = 64 << 20

// splitter cuts output into lines.
type splitter struct {
	line func([]byte)
	fail func(error)
	part []byte
	over bool
}

// Write is called by one goroutine.
func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for !s.over && len(p) > 0 {
		at := bytes.IndexByte(p, '\n')
		piece := p
		if at >= 0 {
			piece = p[:at]
		}
		if len(s.part)+len(piece) > maxLine {
			s.over, s.part = true, nil
			s.fail(fmt.Errorf("it wrote a line of more than %d bytes", maxLine))
			break
		}
		s.part = append(s.part, piece...)
		if at < 0 {
			break
		}
		p = p[at+1:]
		if line := bytes.TrimSpace(s.part); len(line) > 0 {
			s.line(bytes.Clone(line))
		}
		s.part = s.part[:0]
		if cap(s.part) > 1<<20 {
			s.part = nil
		}
	}
	if s.over {
		return n, io.ErrShortWrite // nobody listens any more
	}
	return n, nil
}

// bounded passes a log on, up to maxLog.
type bounded struct {
	to   io.Writer
	fail func(error)
	n    int64
}

// Write is called by one goroutine.
func (b *bounded) Write(p []byte) (int, error) {
	if b.n += int64(len(p)); b.n > maxLog {
		b.fail(fmt.Errorf("it wrote more than %d MiB to its standard error", maxLog>>20))
		return 0, io.ErrShortWrite
	}
	return b.to.Write(p)
}

// feed is the plugin's standard input: requests wait here, so that a plugin that does not read holds nobody up.
type feed struct {
	mu      sync.Mutex // guards the rest
	more    *sync.Cond
	waiting []byte
	closed  bool
}

func newFeed() *feed {
	f := &feed{}
	f.more = sync.NewCond(&f.mu)
	return f
}

// Read blocks until there is something, or the feed is closed.
func (f *feed) Read(p []byte) (int, error) {
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

// Close ends the input after what waits.
func (f *feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.more.Broadcast()
	return nil
}

// write says whether there was room.
func (f *feed) write(line []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting)+len(line) > maxInput {
		return false
	}
	f.waiting = append(f.waiting, line...)
	f.more.Broadcast()
	return true
}
