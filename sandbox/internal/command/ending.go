package command

import (
	"context"
	"time"

	"trajgen/sandbox"
)

// Ending is how a command ends, for the processes that hold one. Exit and Err are set before End is called.
type Ending struct {
	Exit  sandbox.Exit
	Err   error
	Ended chan struct{} // closed when the command is gone
	done  chan struct{} // and its output is copied
}

// NewEnding is that of a command that has not ended.
func NewEnding() Ending { return Ending{Ended: make(chan struct{}), done: make(chan struct{})} }

// End is called once, when the command is gone. What is left of its output is copied on.
func (e *Ending) End(output *Streams) {
	close(e.Ended)
	go func() {
		output.drain()
		close(e.done)
	}()
}

// Wait prefers an end that has come to a context that has ended.
func (e *Ending) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-e.done:
		return e.Exit, e.Err
	default:
	}
	select {
	case <-e.done:
		return e.Exit, e.Err
	case <-ctx.Done():
		return sandbox.Exit{}, context.Cause(ctx)
	}
}

// Within waits for the command to go, for so long at most. It fails when the context ends before that.
func (e *Ending) Within(ctx context.Context, grace time.Duration) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-e.Ended:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
