package modal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	modal "github.com/modal-labs/modal-client/go"

	"trajgen/sandbox"
)

const (
	// Each write is a request, so data that arrives during a request is sent in one later request.
	maxPending = 1 << 20
	// exitTime bounds how long Read waits for the exit code of a process.
	exitTime = 10 * time.Second
)

// stream is the standard input and output of a process in a machine.
type stream struct {
	process *modal.ContainerProcess
	said    *sandbox.Capture // of its standard error
	reading sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	pending []byte
	closed  bool
	err     error // error of a write

	closing sync.Once
}

func newStream(process *modal.ContainerProcess) *stream {
	s := &stream{process: process, said: sandbox.NewCapture(4<<10, 4<<10)}
	s.changed = sync.NewCond(&s.mu)
	s.reading.Go(func() { _, _ = io.Copy(s.said, process.Stderr) })
	go s.send()
	return s
}

// Read returns the process's output. At the end the error says how the process ended.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.process.Stdout.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return 0, explain(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), exitTime)
	defer cancel()
	code, err := s.process.Wait(ctx, nil)
	if err != nil || code == 0 {
		return 0, io.EOF
	}
	return 0, fmt.Errorf("the agent ended with exit code %d: %s", code, strings.TrimSpace(string(s.said.Bytes())))
}

// Write queues data for the process's input.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := 0; ; s.changed.Wait() {
		switch {
		case s.err != nil:
			return n, s.err
		case s.closed:
			return n, io.ErrClosedPipe
		}
		part := p[n:min(len(p), n+maxPending-len(s.pending))]
		s.pending = append(s.pending, part...)
		n += len(part)
		if len(part) > 0 {
			s.changed.Broadcast()
		}
		if n == len(p) {
			return n, nil
		}
	}
}

// send sends queued data until the stream is closed. Close does not wait for it: a request in flight cannot be cancelled.
func (s *stream) send() {
	for {
		s.mu.Lock()
		for len(s.pending) == 0 && !s.closed {
			s.changed.Wait()
		}
		part, closed := s.pending, s.closed
		s.pending = nil
		s.changed.Broadcast()
		s.mu.Unlock()
		if closed {
			_ = s.process.Stdin.Close()
			return
		}
		if _, err := s.process.Stdin.Write(part); err != nil {
			s.mu.Lock()
			s.err = explain(err)
			s.changed.Broadcast()
			s.mu.Unlock()
			return
		}
	}
}

// Close closes the process's input, drops unsent data, and stops reading its output.
func (s *stream) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.changed.Broadcast()
		s.mu.Unlock()
		_ = s.process.Stdout.Close()
		_ = s.process.Stderr.Close()
		s.reading.Wait()
	})
	return nil
}
