package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// localProcess is a process of this machine that leads a session.
type localProcess struct {
	box     *localBox
	number  uint64 // among the commands of the box
	born    uint64 // in ticks
	cmd     *exec.Cmd
	streams *streams
	socket  net.Conn

	ending
}

// localTerminal is a localProcess on a terminal.
type localTerminal struct{ *localProcess }

func (t localTerminal) Resize(ctx context.Context, size TTY) error {
	return resize(ctx, t.streams.stdin, size)
}

func (p *localProcess) start() error {
	b := p.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return fmt.Errorf("sandbox %s: %w", b.spec.ID, ErrGone)
	}
	p.born = birth()
	b.begun++
	if err := p.cmd.Start(); err != nil {
		switch {
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.E2BIG):
			return fmt.Errorf("start %s: %w", p.cmd.Args[0], err)
		default:
			return fmt.Errorf("%s: %w: %w", p.cmd.Args[0], ErrNotFound, err)
		}
	}
	markLimit(p.PID(), p.mark())
	b.running[p] = true
	go p.wait()
	return nil
}

func (p *localProcess) wait() {
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.err = err
	} else {
		state := p.cmd.ProcessState
		if exit != nil {
			state = exit.ProcessState
		}
		p.exit = Exit{Code: state.ExitCode(), CPU: state.UserTime() + state.SystemTime()}
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.exit.Signal = int(status.Signal())
			p.exit.Code = 128 + p.exit.Signal
		}
	}
	p.box.mu.Lock()
	delete(p.box.running, p)
	if p.box.gone {
		p.err = fmt.Errorf("sandbox %s: %w", p.box.spec.ID, ErrGone)
	}
	p.box.mu.Unlock()
	p.end(p.streams)
}

// mark is in the environment of all that descends from the process.
func (p *localProcess) mark() string { return p.box.dir + "/" + strconv.FormatUint(p.number, 10) }

func (p *localProcess) PID() int { return p.cmd.Process.Pid }

func (p *localProcess) Socket() net.Conn { return p.socket }

func (p *localProcess) Kill(ctx context.Context, grace time.Duration) error {
	// The tree is looked at before the first signal: children of what dies are nobody's.
	tree := commandTree(p.PID(), p.mark(), p.born)
	if grace > 0 {
		signalAll(tree, p.PID(), syscall.SIGTERM)
		if err := p.within(ctx, grace); err != nil {
			return err
		}
	}
	for range 20 {
		signalAll(tree, p.PID(), syscall.SIGKILL)
		if tree = commandTree(p.PID(), p.mark(), p.born); len(tree) == 0 {
			break
		}
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signalAll signals what was seen to belong to a session leader; to kill, also whatever else is in its process group.
// Nothing that may live on is signalled twice.
func signalAll(tree []int, leader int, sig syscall.Signal) {
	if sig == syscall.SIGKILL || len(tree) == 0 {
		_ = syscall.Kill(-leader, sig)
	}
	for _, pid := range tree {
		_ = syscall.Kill(pid, sig)
	}
}
