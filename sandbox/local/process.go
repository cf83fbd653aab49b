package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/mark"
)

// process is a process of this machine that leads a session.
type process struct {
	box     *box
	number  uint64 // among the commands of the box
	born    uint64 // in ticks
	cmd     *exec.Cmd
	streams *command.Streams
	socket  net.Conn

	command.Ending
}

// terminal is a process on a terminal.
type terminal struct{ *process }

func (t terminal) Resize(ctx context.Context, size sandbox.TTY) error {
	return t.streams.Resize(ctx, size)
}

func (p *process) start() error {
	b := p.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return fmt.Errorf("sandbox %s: %w", b.spec.ID, sandbox.ErrGone)
	}
	p.born = mark.Birth()
	b.begun++
	if err := p.cmd.Start(); err != nil {
		switch {
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.E2BIG):
			return fmt.Errorf("start %s: %w", p.cmd.Args[0], err)
		default:
			return fmt.Errorf("%s: %w: %w", p.cmd.Args[0], sandbox.ErrNotFound, err)
		}
	}
	mark.Put(p.PID(), p.mark())
	b.running[p] = true
	go p.wait()
	return nil
}

func (p *process) wait() {
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.Err = err
	} else {
		state := p.cmd.ProcessState
		if exit != nil {
			state = exit.ProcessState
		}
		p.Exit = sandbox.Exit{Code: state.ExitCode(), CPU: state.UserTime() + state.SystemTime()}
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.Exit.Signal = int(status.Signal())
			p.Exit.Code = 128 + p.Exit.Signal
		}
	}
	p.box.mu.Lock()
	delete(p.box.running, p)
	if p.box.gone {
		p.Err = fmt.Errorf("sandbox %s: %w", p.box.spec.ID, sandbox.ErrGone)
	}
	p.box.mu.Unlock()
	p.End(p.streams)
}

// mark is in the environment of all descendants of the process.
func (p *process) mark() string { return p.box.dir + "/" + strconv.FormatUint(p.number, 10) }

func (p *process) PID() int { return p.cmd.Process.Pid }

func (p *process) Socket() net.Conn { return p.socket }

func (p *process) Kill(ctx context.Context, grace time.Duration) error {
	// Find the tree before the first signal: children of a dead process lose their parent.
	tree := mark.Tree(p.PID(), p.mark(), p.born)
	if grace > 0 {
		signalAll(tree, p.PID(), syscall.SIGTERM)
		if err := p.Within(ctx, grace); err != nil {
			return err
		}
	}
	for range 20 {
		signalAll(tree, p.PID(), syscall.SIGKILL)
		if tree = mark.Tree(p.PID(), p.mark(), p.born); len(tree) == 0 {
			break
		}
	}
	select {
	case <-p.Ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signalAll signals the processes found below a session leader; for SIGKILL, also the rest of its process group. A process that
// may survive the signal gets it once.
func signalAll(tree []int, leader int, sig syscall.Signal) {
	if sig == syscall.SIGKILL || len(tree) == 0 {
		_ = syscall.Kill(-leader, sig)
	}
	for _, pid := range tree {
		_ = syscall.Kill(pid, sig)
	}
}
