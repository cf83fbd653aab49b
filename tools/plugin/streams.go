package plugin

import (
	"bytes"
	"fmt"
	"io"
)

// maxInput is how many bytes may wait for a plugin to read them.
const maxInput = 64 << 20

// splitter splits output into lines.
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
		return n, io.ErrShortWrite // the reader has gone
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
