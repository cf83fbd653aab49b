package sandbox

import (
	"context"
	"time"
)

// ending is how a command ends, for the processes that hold one. exit and err are set before ended is closed.
type ending struct {
	exit  Exit
	err   error
	ended chan struct{} // the command is gone
	done  chan struct{} // and its output is copied
}

func newEnding() ending { return ending{ended: make(chan struct{}), done: make(chan struct{})} }

// end is called once, when the command is gone. What is left of its output is copied on.
func (e *ending) end(output *streams) {
	close(e.ended)
	go func() {
		output.drain()
		close(e.done)
	}()
}

// Wait prefers an end that has come to a context that has ended.
func (e *ending) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-e.done:
		return e.exit, e.err
	default:
	}
	select {
	case <-e.done:
		return e.exit, e.err
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// within waits for the command to go, for so long at most. It fails when the context ends before that.
func (e *ending) within(ctx context.Context, grace time.Duration) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-e.ended:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
