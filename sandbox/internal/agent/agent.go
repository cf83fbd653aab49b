// Package agent runs the agent of a sandbox as a process, for the backends that do so: its streams, its log on stderr, and its
// end.
package agent

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// Process is an agent that runs on this machine, and the stream of a relay client to it.
type Process struct {
	Stderr
	command *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	grace   time.Duration
	ended   chan struct{}

	closing sync.Once
}

// Start starts a command in a session of its own, so that signals from the runner's terminal do not reach it. When the process
// is closed, it has the time grace to end by itself.
func Start(c *exec.Cmd, grace time.Duration, logger *slog.Logger) (*Process, error) {
	p := &Process{command: c, grace: grace, ended: make(chan struct{})}
	p.Stderr.logger = logger
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		ourIn.Close()
		return nil, err
	}
	defer theirOut.Close()
	p.stdin, p.stdout = ourIn, ourOut
	c.Stdin, c.Stdout, c.Stderr = theirIn, theirOut, &p.Stderr
	// Processes that it leaves behind may hold the pipe of its stderr.
	c.WaitDelay = time.Second
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setsid = true
	if err := c.Start(); err != nil {
		ourIn.Close()
		ourOut.Close()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = c.Wait() // the agent says on its stderr what was wrong
	}()
	return p, nil
}

// Read reads from the agent.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the agent.
func (p *Process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Close closes the agent's input and does not wait for its end, as the agent may hang.
func (p *Process) Close() error {
	p.closing.Do(func() {
		timer := time.AfterFunc(p.grace, p.Kill)
		_ = p.stdin.Close()
		go func() {
			<-p.ended
			timer.Stop()
			_ = p.stdout.Close()
		}()
	})
	return nil
}

// Kill ends the process and its session's group at once.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stderr keeps an agent's stderr and passes its lines to a logger.
type Stderr struct {
	logger *slog.Logger

	mu   sync.Mutex
	kept *sandbox.Capture
	rest []byte
}

// NewStderr passes lines to logger.
func NewStderr(logger *slog.Logger) *Stderr { return &Stderr{logger: logger} }

// Write never fails.
func (s *Stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.capture().Write(p)
	s.rest = append(s.rest, p...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok && len(s.rest) < 4<<10 {
			return len(p), nil
		}
		s.rest = rest
		if len(line) > 0 {
			s.logger.Info("a sandbox agent said", "line", string(line))
		}
	}
}

func (s *Stderr) capture() *sandbox.Capture {
	if s.kept == nil {
		s.kept = sandbox.NewCapture(4<<10, 4<<10)
	}
	return s.kept
}

// Said returns the beginning and the end of the text.
func (s *Stderr) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.capture().Bytes()))
}
