package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/embedded"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// brokerClient is the runner's side of one broker process.
type brokerClient struct {
	conn    *wire.Conn
	process *os.Process
	ready   broker.Ready
	stderr  *sandbox.Capture
	ended   chan struct{} // closed when the socket has been closed

	keeping sync.Mutex      // held while the broker is given a folder
	folders map[string]bool // that the broker has, by digest

	sending sync.Mutex
	mu      sync.Mutex
	next    int64
	waiting map[int64]chan brokerAnswer
	stopped sync.Once
	stopErr error
	killed  bool // it was killed, without time to clean up
}

type brokerAnswer struct {
	err error
	fds []int
}

// brokerEnv keeps the broker's heap small: each sandbox is forked from the broker, and each fork copies its page tables.
var brokerEnv = []string{"GOTRACEBACK=single", "GOGC=20"}

// startBroker runs the broker (this program or the built-in small one) in a mount namespace of its own; without root's rights,
// also in a user namespace, which gives the right to make the mount namespace.
func startBroker(opts options, ids *userIDs) (*brokerClient, error) {
	builtIn, err := embedded.Unpack()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := wire.Pair()
	if err != nil {
		return nil, err
	}
	// Our copy would keep the socket open after the broker's death.
	child := os.NewFile(uintptr(theirs), "broker socket")
	defer child.Close()
	errors, stderr, err := os.Pipe()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer stderr.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	defer null.Close()
	programs, err := openPrograms(builtIn)
	defer programs.close()
	if err != nil {
		unix.Close(ours)
		return nil, err
	}
	files := []*os.File{null, null, stderr, child, programs.helper, programs.broker}
	process, err := os.StartProcess(lastOf(files), []string{broker.Name}, &os.ProcAttr{
		Dir: "/", Env: brokerEnv,
		Files: files,
		Sys:   ids.separate(),
	})
	if err == nil {
		if err = ids.give(process.Pid); err != nil {
			_ = process.Kill()
			_, _ = process.Wait()
		}
	}
	if err != nil {
		unix.Close(ours)
		errors.Close()
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	c := &brokerClient{
		process: process, stderr: sandbox.NewCapture(8<<10, 8<<10), ended: make(chan struct{}),
		waiting: map[int64]chan brokerAnswer{}, folders: map[string]bool{},
	}
	go func() {
		_, _ = io.Copy(c.stderr, errors)
		errors.Close()
	}()
	if c.conn, err = wire.Polled(ours); err != nil {
		return nil, err
	}
	if err := c.greet(opts, ids.kind, programs.guests); err != nil {
		close(c.ended)
		return nil, joinErrors(err, c.stop())
	}
	go c.receive()
	return c, nil
}

func (c *brokerClient) greet(opts options, ids int64, guests bool) error {
	config := broker.Config{StateDir: opts.StateDir, Owner: int64(os.Getpid()), HostPaths: opts.HostPaths, Cgroups: opts.cgroups, IDs: ids, Guests: guests}
	if opts.Images != nil {
		config.Images = opts.Images.Dir()
	}
	if config.Cgroups == "" {
		config.Cgroups = "auto"
	}
	var e wire.Encoder
	e.Add(&config)
	if err := c.conn.Send(e.Bytes); err != nil {
		return fmt.Errorf("greet the broker: %w", err)
	}
	message, fds, err := c.conn.Recv()
	wire.CloseAll(fds)
	if err != nil {
		_, _ = c.process.Wait()
		return fmt.Errorf("the broker died at once (is sandbox.Init the first call of main?): %w; it said %q", err, c.said())
	}
	d := wire.NewDecoder(message)
	d.Take(&c.ready)
	if d.Err() != nil {
		return d.Err()
	}
	if c.ready.Err != "" {
		return errors.New(c.ready.Err)
	}
	return nil
}

func (c *brokerClient) said() string { return strings.TrimSpace(string(c.stderr.Bytes())) }

func (c *brokerClient) dead() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *brokerClient) receive() {
	defer close(c.ended)
	for {
		message, fds, err := c.conn.Recv()
		if err != nil {
			return
		}
		d := wire.NewDecoder(message)
		id, text := d.Int(), d.String()
		c.mu.Lock()
		waiting := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if waiting == nil {
			wire.CloseAll(fds)
			continue
		}
		answer := brokerAnswer{fds: fds}
		if text != "" {
			answer.err = errors.New(text)
		}
		waiting <- answer
	}
}

// keep gives the broker a folder that it does not have.
func (c *brokerClient) keep(f *sandbox.Folder) error {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	if c.folders[f.Digest] {
		return nil
	}
	files := make([]guest.Write, len(f.Files))
	for i, w := range f.Files {
		files[i] = guest.Write{Path: w.Path, Data: w.Data, Mode: int64(w.Perm())}
	}
	var e wire.Encoder
	wire.List(e.Coder(), &files, (*guest.Write).Fields)
	fd, err := wire.SealedFile(e.Bytes)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	answer, err := c.ask(broker.KindFolder, func(e *wire.Encoder) { e.String(f.Digest) }, fd)
	if err != nil {
		return err
	}
	select {
	case a := <-answer:
		c.folders[f.Digest] = a.err == nil
		return a.err
	case <-c.ended:
		return fmt.Errorf("the broker died: %w", sandbox.ErrGone)
	}
}

// ask sends a request; the answer comes on the channel, which is buffered.
func (c *brokerClient) ask(kind int64, body func(*wire.Encoder), fds ...int) (chan brokerAnswer, error) {
	answer := make(chan brokerAnswer, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = answer
	c.mu.Unlock()
	var e wire.Encoder
	e.Int(kind)
	e.Int(id)
	body(&e)
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.Send(e.Bytes, fds...); err != nil {
		return nil, fmt.Errorf("the broker is gone (%w): %w", err, sandbox.ErrGone)
	}
	return answer, nil
}

// guest sends a request whose answer is the socket of a new guest. When ctx ends first, it closes the sandbox with that name.
func (c *brokerClient) guest(ctx context.Context, kind int64, body func(*wire.Encoder), name string) (socket int, err error) {
	fds, err := c.wait(ctx, kind, body, name, 1)
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// wait sends a request, and returns the descriptors in its answer, which are a number of them. When ctx ends first, it closes the
// sandbox with that name.
func (c *brokerClient) wait(ctx context.Context, kind int64, body func(*wire.Encoder), name string, number int) (fds []int, err error) {
	answer, err := c.ask(kind, body)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		if a.err != nil || len(a.fds) != number {
			wire.CloseAll(a.fds)
			return nil, joinErrors(a.err)
		}
		return a.fds, nil
	case <-c.ended:
		return nil, fmt.Errorf("the broker died: %w", sandbox.ErrGone)
	case <-ctx.Done():
		go func() {
			select {
			case a := <-answer:
				wire.CloseAll(a.fds)
				if a.err == nil {
					_ = c.close(name)
				}
			case <-c.ended:
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// close ends a sandbox.
func (c *brokerClient) close(id string) error { return c.end(broker.KindClose, id) }

// end has the broker end what has a name. A dead broker is not an error: what it had made died with it.
func (c *brokerClient) end(kind int64, name string) error {
	answer, err := c.ask(kind, func(e *wire.Encoder) { e.String(name) })
	if err != nil {
		return nil
	}
	select {
	case a := <-answer:
		wire.CloseAll(a.fds)
		return a.err
	case <-c.ended:
		return nil
	case <-time.After(closeTime):
		return fmt.Errorf("end %s: no answer from the broker in %v", name, closeTime)
	}
}

// stop ends the broker by closing its socket and waits until it has cleaned up.
func (c *brokerClient) stop() error {
	c.stopped.Do(func() {
		_ = c.conn.Close()
		timer := time.AfterFunc(closeTime, func() { _ = c.process.Kill() })
		defer timer.Stop()
		status, err := c.process.Wait()
		c.killed = status == nil || !status.Exited()
		if errors.Is(err, syscall.ECHILD) || errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		if err == nil && status != nil && status.ExitCode() == 1 {
			err = fmt.Errorf("broker: %s", c.said())
		}
		c.stopErr = err
	})
	return c.stopErr
}

func joinErrors(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.New("malformed answer")
}
