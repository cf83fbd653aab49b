package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// RunOptions bound a Run. The zero value is useful.
type RunOptions struct {
	// Head and Tail are how many bytes of the beginning and the end of each stream are kept: 64 KiB each when zero.
	Head, Tail int
	// Flood is the output of one stream, in bytes, at which Run kills the command: 64 MiB when zero.
	Flood int64
	// Merge puts stderr into stdout, in the order of writing.
	Merge bool
	// Grace is the time between SIGTERM and SIGKILL when ctx ends.
	Grace time.Duration
}

// Result is how a Run ended.
type Result struct {
	Exit           Exit
	Stdout, Stderr *Capture
	TimedOut       bool // ctx's deadline passed and the command was killed
	Flooded        bool // it was killed because it printed too much
}

// killTime bounds how long Run waits for a command that it has killed. It is longer than a backend needs to find out that a
// sandbox is lost.
const killTime = 3 * time.Minute

// Run runs a command to its end and keeps what it prints. cmd's own Stdout and Stderr, when set, receive it as well.
// When ctx's deadline passes, the command and its descendants are killed and the result says so; when ctx is cancelled
// they are killed too, and the cause is returned beside what was printed so far.
func Run(ctx context.Context, sb Sandbox, cmd Command, opts RunOptions) (Result, error) {
	opts.Head = cmp.Or(opts.Head, 64<<10)
	opts.Tail = cmp.Or(opts.Tail, 64<<10)
	opts.Flood = cmp.Or(opts.Flood, 64<<20)
	var flooded atomic.Bool
	flood := make(chan struct{}, 2)
	capture := func() *Capture {
		c := NewCapture(opts.Head, opts.Tail)
		c.limit, c.over = opts.Flood, func() { flood <- struct{}{} }
		return c
	}
	result := Result{Stdout: capture(), Stderr: capture()}
	cmd.Stdout = also(result.Stdout, cmd.Stdout)
	if opts.Merge {
		cmd.Stderr = cmd.Stdout
	} else {
		cmd.Stderr = also(result.Stderr, cmd.Stderr)
	}
	process, err := sb.Start(ctx, cmd)
	if err != nil {
		// A deadline that passes while the command starts is treated like one that passes just after.
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(err, ErrGone) {
			result.TimedOut = true
			return result, nil
		}
		return result, err
	}
	if socket := process.Socket(); socket != nil {
		defer socket.Close()
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-flood:
			flooded.Store(true)
			stop()
		case <-running.Done():
		}
	}()
	result.Exit, err = process.Wait(running)
	stop()
	<-watched
	result.Flooded = flooded.Load()
	if err == nil || errors.Is(err, ErrGone) {
		return result, err
	}
	result.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime+opts.Grace)
	defer cancel()
	if err := process.Kill(ending, opts.Grace); err != nil {
		return result, fmt.Errorf("kill the command: %w", err)
	}
	if result.Exit, err = process.Wait(ending); err != nil {
		return result, err
	}
	if ctx.Err() != nil && !result.TimedOut {
		return result, context.Cause(ctx)
	}
	return result, nil
}

func also(kept *Capture, writer io.Writer) io.Writer {
	if writer == nil {
		return kept
	}
	return io.MultiWriter(kept, writer)
}
