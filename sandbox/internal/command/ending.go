package command

import (
	"context"
	"time"

	"trajgen/sandbox"
)

// Ending is the end of a command, for process types to embed. Exit and Err are set before End is called.
type Ending struct {
	Exit  sandbox.Exit
	Err   error
	Ended chan struct{} // closed when the command is gone
	done  chan struct{} // closed when its output is copied, too
}

// NewEnding returns the Ending of a command that runs.
func NewEnding() Ending { return Ending{Ended: make(chan struct{}), done: make(chan struct{})} }

// End is called once, when the command is gone. It goes on to copy the rest of its output.
func (e *Ending) End(output *Streams) {
	close(e.Ended)
	go func() {
		output.drain()
		close(e.done)
	}()
}

// Wait returns the exit of a command that has ended, even if the context has ended, too.
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

// Within waits up to grace for the end of the command. It fails when the context ends before that.
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
