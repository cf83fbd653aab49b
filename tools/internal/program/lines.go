package program

import (
	"bytes"
	"fmt"
	"io"
)

// Lines splits output into lines. A line gets no blanks around it, and an empty one is left out.
type Lines struct {
	Most int // bytes of a line
	Line func([]byte)
	Fail func(error) // gets why the rest of the output is ignored

	part []byte
	over bool
}

// Write is called by one goroutine.
func (s *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for !s.over && len(p) > 0 {
		at := bytes.IndexByte(p, '\n')
		piece := p
		if at >= 0 {
			piece = p[:at]
		}
		if len(s.part)+len(piece) > s.Most {
			s.over, s.part = true, nil
			s.Fail(fmt.Errorf("it wrote a line of more than %d bytes", s.Most))
			break
		}
		s.part = append(s.part, piece...)
		if at < 0 {
			break
		}
		p = p[at+1:]
		if line := bytes.TrimSpace(s.part); len(line) > 0 {
			s.Line(bytes.Clone(line))
		}
		s.part = s.part[:0]
		if cap(s.part) > 1<<20 {
			s.part = nil
		}
	}
	if s.over {
		return n, io.ErrShortWrite // the reader has gone
	}
	return n, nil
}

// bounded passes a log on, up to a number of bytes.
type bounded struct {
	to   io.Writer
	most int64
	fail func(error)
	n    int64
}

// Write is called by one goroutine.
func (b *bounded) Write(p []byte) (int, error) {
	if b.n += int64(len(p)); b.n > b.most {
		b.fail(fmt.Errorf("it wrote more than %d MiB to its standard error", b.most>>20))
		return 0, io.ErrShortWrite
	}
	return b.to.Write(p)
}
