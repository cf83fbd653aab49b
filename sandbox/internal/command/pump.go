package command

import (
	"io"
	"os"
	"sync"
	"time"

	"trajgen/sandbox"

	"golang.org/x/sys/unix"
)

// pump copies a command's output from a pipe to a writer.
type pump struct {
	pipe *os.File
	done chan struct{} // closed when the pipe has ended or the pump was detached
	// command is closed when the command on this terminal has ended. Until then, an end of file does not count: a command may
	// close its standard streams and go on, and closing the terminal would hang up on it. Nil with a pipe.
	command <-chan struct{}

	mu       sync.Mutex
	writer   io.Writer
	detached bool
}

// drainTime is how long Wait goes on reading after the command has ended.
const drainTime = 50 * time.Millisecond

// throttle slows down output without a reader: otherwise a background process that prints without end would keep a core busy,
// and closing its pipe would kill it.
const throttle = 20 * time.Millisecond

func newPump(pipe *os.File, writer io.Writer, ended <-chan struct{}) *pump {
	p := &pump{pipe: pipe, writer: writer, done: make(chan struct{}), command: ended}
	go p.run()
	return p
}

var pumpBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

func (p *pump) run() {
	defer p.pipe.Close()
	buffer := pumpBuffers.Get().(*[]byte)
	defer pumpBuffers.Put(buffer)
	for {
		n, err := p.pipe.Read(*buffer)
		if !p.deliver((*buffer)[:n]) {
			time.Sleep(throttle)
		}
		if err != nil && !p.goesOn() {
			p.detach()
			return
		}
	}
}

// goesOn waits a moment for a process to open the terminal again, as long as the command runs.
func (p *pump) goesOn() bool {
	if p.command == nil {
		return false
	}
	again := time.NewTimer(throttle)
	defer again.Stop()
	select {
	case <-p.command:
		p.command = nil // read the rest
	case <-again.C:
	}
	return true
}

func (p *pump) deliver(data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.detached {
		return false
	}
	if len(data) > 0 {
		// When the writer fails, the pump drops the output; the command must not notice.
		if _, err := p.writer.Write(data); err != nil {
			p.writer = io.Discard
		}
	}
	return true
}

// detach makes sure that the pump does not call the writer again.
func (p *pump) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.detached {
		p.detached = true
		p.writer = nil
		close(p.done)
	}
}

// Streams are the runner's ends of a command's standard descriptors.
type Streams struct {
	pumps  []*pump
	stdin  *os.File
	reader io.Reader
	// terminal is closed when it is known whether there are streams: those of a terminal come when the command runs. Nil
	// without a terminal.
	terminal chan struct{}
}

// Start begins to copy, once the command runs.
func (s *Streams) Start() {
	if s.stdin == nil || s.reader == nil {
		return
	}
	go func() {
		// It ends early when the command closes its stdin; Wait does not wait for it, as the reader may never end.
		_, _ = io.Copy(s.stdin, s.reader)
		if s.terminal == nil {
			_ = s.stdin.Close()
		}
	}()
}

// drain returns when all output is copied or drainTime is over; afterwards no writer is called.
func (s *Streams) drain() {
	if s.terminal != nil {
		<-s.terminal
	}
	deadline := time.NewTimer(drainTime)
	defer deadline.Stop()
	for _, p := range s.pumps {
		for rounds := 0; !p.ended(deadline.C); rounds++ {
			if !p.behind(rounds) {
				for _, p := range s.pumps {
					p.detach()
				}
				return
			}
			deadline.Reset(drainTime)
		}
	}
}

func (p *pump) ended(deadline <-chan time.Time) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	select {
	case <-p.done:
		return true
	case <-deadline:
		return false
	}
}

// behind reports whether output is late because this machine is overloaded, so that another round is worth it: no process holds
// the pipe any more, or it is not yet empty.
func (p *pump) behind(rounds int) bool {
	connection, err := p.pipe.SyscallConn()
	if err != nil {
		return false
	}
	behind := false
	_ = connection.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, 0); err != nil || n == 0 {
			return
		}
		if poll[0].Revents&unix.POLLHUP != 0 {
			behind = rounds < 200
		} else {
			behind = rounds < 10
		}
	})
	return behind
}

// Close ends all copying at once, for a sandbox that is gone.
func (s *Streams) Close() {
	for _, p := range s.pumps {
		_ = p.pipe.Close()
	}
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
}

// SameWriter reports whether both streams go to the same writer. Writers that cannot be compared are different.
func SameWriter(a, b io.Writer) (same bool) {
	defer func() { _ = recover() }()
	return a != nil && a == b
}

// Ends are the command's ends of the pipes; the caller closes them after the start.
type Ends struct {
	Stdin, Stdout, Stderr *os.File // nil is nothing; Stderr may be Stdout
	Socket                *os.File
}

// Close closes the ends.
func (c *Ends) Close() {
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr, c.Socket} {
		if f != nil {
			_ = f.Close() // stdout twice is harmless
		}
	}
}

// Plumb makes the pipes of a command. A command on a terminal has none.
func Plumb(cmd *sandbox.Command) (*Streams, *Ends, error) {
	s, c := &Streams{reader: cmd.Stdin}, &Ends{}
	if cmd.TTY != nil {
		s.terminal = make(chan struct{})
		return s, c, nil
	}
	fail := func(err error) (*Streams, *Ends, error) {
		s.Close()
		c.Close()
		return nil, nil, err
	}
	var err error
	if cmd.Stdin != nil {
		if c.Stdin, s.stdin, err = os.Pipe(); err != nil {
			return fail(err)
		}
	}
	output := func(w io.Writer) (*os.File, error) {
		r, child, err := os.Pipe()
		if err == nil {
			s.pumps = append(s.pumps, newPump(r, w, nil))
		}
		return child, err
	}
	if cmd.Stdout != nil {
		if c.Stdout, err = output(cmd.Stdout); err != nil {
			return fail(err)
		}
	}
	switch {
	case cmd.Stderr == nil:
	case SameWriter(cmd.Stdout, cmd.Stderr):
		c.Stderr = c.Stdout
	default:
		if c.Stderr, err = output(cmd.Stderr); err != nil {
			return fail(err)
		}
	}
	return s, c, nil
}
