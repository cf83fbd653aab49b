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

// maxFlood is how much a command may print before it is killed: it keeps a machine busy for nothing.
const maxFlood = 64 << 20

// killTime is what ending a command may take, whatever became of the call's context.
const killTime = 10 * time.Second

// bounds say when a command is killed and how.
type bounds struct {
	timeout time.Duration
	grace   time.Duration // between SIGTERM and SIGKILL
}

// hurry is the most grace that a command gets when the call itself is over.
const hurry = time.Second

// run is runWithin without grace.
func run(ctx context.Context, box sandbox.Sandbox, cmd sandbox.Command, timeout time.Duration,
	serve func(ctx context.Context, proc sandbox.Process),
) (exit sandbox.Exit, stopped, err error) {
	return runWithin(ctx, box, cmd, bounds{timeout: timeout}, serve)
}

// runWithin runs a command to its end. What must not go on is killed with its whole tree: a command over its timeout or
// that floods (stopped is errTimedOut or errFlood then), and any when ctx ends (context.Cause(ctx) is the error then).
// serve talks to the command's socket and is waited for; its context ends before a command is killed, and the socket is
// closed soon after the command ended.
func runWithin(ctx context.Context, box sandbox.Sandbox, cmd sandbox.Command, limit bounds,
	serve func(ctx context.Context, proc sandbox.Process),
) (exit sandbox.Exit, stopped, err error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd.Stdout, cmd.Stderr = watchFlood(cmd.Stdout, cmd.Stderr, func() { stop(errFlood) })
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

// watchFlood counts what is written. One writer for both streams stays one, as that keeps their order.
func watchFlood(stdout, stderr io.Writer, flood func()) (io.Writer, io.Writer) {
	if stdout == nil {
		return stdout, stderr
	}
	counted := &counter{to: stdout, flood: flood}
	if stderr == stdout {
		return counted, counted
	}
	if stderr == nil {
		return counted, nil
	}
	return counted, &counter{to: stderr, flood: flood}
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

// hangUp closes the socket and waits for who serves it. After an ordinary end what the command wrote last may still
// be on its way, and the end of the stream does not come when a descendant holds the other end: hence the patience.
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

// interrupted is what the model gets of work that the end of the call cut short. Extra has what there was of it.
func interrupted(ctx context.Context, what string, extra map[string]any) *registry.Failure {
	failure := &registry.Failure{
		Class: "interrupted", Message: fmt.Sprintf("%s was interrupted: %v", what, context.Cause(ctx)), Extra: extra,
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failure.Class, failure.Status = "timeout", episode.CallTimeout
	}
	return failure
}
