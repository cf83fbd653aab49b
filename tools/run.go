package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

var (
	errTimedOut = errors.New("command timed out")
	errFlood    = errors.New("command printed too much")
)

// maxFlood is how many bytes a command may print before it is killed.
const maxFlood = 64 << 20

// killTime bounds the kill of a command, whatever the state of the call's context.
const killTime = 10 * time.Second

// bounds say when and how a command is killed.
type bounds struct {
	timeout time.Duration
	grace   time.Duration // between SIGTERM and SIGKILL
}

// hurry bounds the grace of a command when the call itself has ended.
const hurry = time.Second

// run runs a command to its end. It kills the command with its whole tree after the timeout or a flood (then stopped is
// errTimedOut or errFlood), and when ctx ends (then the error is context.Cause(ctx)). serve talks to the command's socket;
// run waits for it. serve's context ends before a command is killed, and the socket is closed soon after the command's
// end.
func run(ctx context.Context, box sandbox.Sandbox, cmd sandbox.Command, limit bounds,
	serve func(ctx context.Context, proc sandbox.Process),
) (exit sandbox.Exit, stopped, err error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd.Stdout, cmd.Stderr = counted(cmd.Stdout, cmd.Stderr, func() { stop(errFlood) })
	waiting, cancel := context.WithTimeoutCause(waiting, limit.timeout, errTimedOut)
	defer cancel()
	proc, err := box.Start(ctx, cmd)
	if err != nil {
		return exit, nil, err
	}
	served := make(chan struct{})
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	go func() {
		defer close(served)
		if serve != nil {
			serve(serving, proc)
		}
	}()
	exit, err = proc.Wait(waiting)
	if err != nil && waiting.Err() != nil {
		stopped = context.Cause(waiting)
		stopServing()
		if ctx.Err() != nil {
			limit.grace = min(limit.grace, hurry)
		}
		exit, err = kill(ctx, proc, limit.grace)
	}
	hangUp(proc, served, stopServing, err == nil && stopped == nil)
	if ctx.Err() != nil {
		return exit, nil, context.Cause(ctx)
	}
	return exit, stopped, err
}

// counted counts what is written. If both streams have one writer, they keep it, so that the order of output is kept.
func counted(stdout, stderr io.Writer, flood func()) (io.Writer, io.Writer) {
	count := func(w io.Writer) io.Writer {
		if w == nil {
			return nil
		}
		return &counter{to: w, flood: flood}
	}
	if stdout == stderr {
		both := count(stdout)
		return both, both
	}
	return count(stdout), count(stderr)
}

type counter struct {
	to    io.Writer
	n     atomic.Int64
	flood func()
}

func (c *counter) Write(p []byte) (int, error) {
	if c.n.Add(int64(len(p))) > maxFlood {
		c.flood()
	}
	return c.to.Write(p)
}

func kill(ctx context.Context, proc sandbox.Process, grace time.Duration) (sandbox.Exit, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime+grace)
	defer cancel()
	if err := proc.Kill(ctx, grace); err != nil {
		return sandbox.Exit{}, err
	}
	return proc.Wait(ctx)
}

// hangUp closes the socket and waits for serve. After an ordinary end, the command's last writes may still be in flight, and
// the stream does not end while a descendant holds the other end: hence the time limit.
func hangUp(proc sandbox.Process, served <-chan struct{}, stop func(), ordinary bool) {
	if ordinary {
		timer := time.NewTimer(200 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-served:
		case <-timer.C:
		}
	}
	stop()
	if conn := proc.Socket(); conn != nil {
		conn.Close()
	}
	<-served
}

// interrupted is the failure for work that the end of the call cut short. extra is its partial result.
func interrupted(ctx context.Context, what string, extra map[string]any) *registry.Failure {
	failure := &registry.Failure{
		Class: "interrupted", Message: fmt.Sprintf("%s was interrupted: %v", what, context.Cause(ctx)), Extra: extra,
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failure.Class, failure.Status = "timeout", episode.CallTimeout
	}
	return failure
}
