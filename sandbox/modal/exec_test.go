package modal_test

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"trajgen/sandbox"
)

// exec is a command in a machine.
type exec struct {
	machine        *machine
	stdin          *io.PipeReader
	input          *io.PipeWriter
	stdout, stderr *log
	ended          chan struct{}
	once           sync.Once

	// Set before ended is closed.
	exit sandbox.Exit
	gone bool

	mu      sync.Mutex // guards what follows
	written uint64
	eof     bool
}

func newExec(m *machine) *exec {
	e := &exec{machine: m, stdout: newLog(), stderr: newLog(), ended: make(chan struct{})}
	e.stdin, e.input = io.Pipe()
	return e
}

func (e *exec) exited(x sandbox.Exit) {
	e.end(func() { e.exit = x })
	e.machine.use(-1)
}

func (e *exec) lost() { e.end(func() { e.gone = true }) }

func (e *exec) end(how func()) {
	e.once.Do(func() {
		how()
		_ = e.stdin.Close()
		e.stdout.end(e.gone)
		e.stderr.end(e.gone)
		close(e.ended)
	})
}

// write passes on what was not passed on before.
func (e *exec) write(offset uint64, data []byte, eof bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.eof:
		return status.Error(codes.FailedPrecondition, "stdin is closed")
	case offset > e.written:
		return status.Errorf(codes.OutOfRange, "offset %d, and %d bytes have come", offset, e.written)
	case offset < e.written:
		data = data[min(uint64(len(data)), e.written-offset):]
	}
	n, err := e.input.Write(data)
	e.written += uint64(n)
	if err != nil {
		return status.Error(codes.FailedPrecondition, "the command no longer reads")
	}
	if eof {
		e.eof = true
		_ = e.input.Close()
	}
	return nil
}

// kept is how much output stays, so that a reader that lost its connection can go on.
const kept = 4 << 20

// log is what a command printed and was not read yet, and some of what was.
type log struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	base    int64         // offset of the first byte
	bytes   []byte
	asked   int64 // what the reader has asked for
	closed  bool
	broken  bool
}

func newLog() *log { return &log{changed: make(chan struct{})} }

func (l *log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Write waits for the reader when there is too much.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.base+int64(len(l.bytes))-l.asked > kept && !l.closed {
		changed := l.changed
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	l.bytes = append(l.bytes, p...)
	if extra := l.asked - l.base - kept; extra > kept {
		l.bytes = append([]byte(nil), l.bytes[extra:]...)
		l.base += extra
	}
	l.wake()
	return len(p), nil
}

// read waits for output from an offset on.
func (l *log) read(ctx context.Context, offset int64) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if offset < l.base || offset > l.base+int64(len(l.bytes)) {
			return nil, status.Errorf(codes.OutOfRange, "offset %d, and there is from %d to %d", offset, l.base, l.base+int64(len(l.bytes)))
		}
		if offset > l.asked {
			l.asked = offset
			l.wake()
		}
		if part := l.bytes[offset-l.base:]; len(part) > 0 {
			return append([]byte(nil), part[:min(len(part), 256<<10)]...), nil
		}
		if l.broken {
			return nil, status.Error(codes.NotFound, "the task has ended")
		}
		if l.closed {
			return nil, io.EOF
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (l *log) end(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.broken = true, broken
	l.wake()
}
