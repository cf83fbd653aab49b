// Package program runs a user's program that speaks in lines over its standard streams: a plugin, an MCP server.
package program

import (
	"context"
	"fmt"
	"io"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/internal/feed"
)

// killTime bounds the kill of a process. It is less than the dispatcher waits for a tool after its timeout.
const killTime = 3 * time.Second

// Streams says what becomes of a process's streams. Each function is called by one goroutine.
type Streams struct {
	MaxInput int // bytes that may wait for the process to read them
	MaxLine  int // bytes of a line of its output
	Line     func([]byte)
	// Fail gets why the rest of the output is ignored.
	Fail func(error)
	Log  int // bytes of the end of its standard error that are kept
	// MaxLog is how much it may write there before Fail is called; 0 is any amount.
	MaxLog int64
}

// Process is a running program. It outlives the context that it was started with.
type Process struct {
	Input  *feed.Feed
	Stderr *sandbox.Capture
	Ended  chan struct{} // closed by Watch when Exit and Err are set
	Exit   sandbox.Exit
	Err    error

	proc sandbox.Process
}

// Start runs a command. Its streams are those of s.
func Start(ctx context.Context, box sandbox.Sandbox, cmd sandbox.Command, s Streams) (*Process, error) {
	p := &Process{Input: feed.New(s.MaxInput), Stderr: sandbox.NewCapture(0, s.Log), Ended: make(chan struct{})}
	cmd.Stdin, cmd.Stdout = p.Input, &Lines{Most: s.MaxLine, Line: s.Line, Fail: s.Fail}
	var log io.Writer = p.Stderr
	if s.MaxLog > 0 {
		log = &bounded{to: p.Stderr, most: s.MaxLog, fail: s.Fail}
	}
	cmd.Stderr = log
	var err error
	if p.proc, err = box.Start(ctx, cmd); err != nil {
		p.Input.Close()
		return nil, fmt.Errorf("start it: %w", err)
	}
	return p, nil
}

// Watch records the end of the process. It returns when the process or ctx has ended.
func (p *Process) Watch(ctx context.Context) {
	p.Exit, p.Err = p.proc.Wait(ctx)
	p.Input.Close()
	close(p.Ended)
}

// Kill ends the process with its descendants. One that survives ends with its sandbox.
func (p *Process) Kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_ = p.proc.Kill(ctx, 0)
	p.Input.Close()
}

// HowEnded says how a process ended whose Ended is closed and which was not lost.
func (p *Process) HowEnded() string {
	switch {
	case p.Exit.OOM:
		return "it ran out of memory"
	case p.Exit.Signal != 0:
		return fmt.Sprintf("it was ended by signal %d", p.Exit.Signal)
	}
	return fmt.Sprintf("it ended with status %d", p.Exit.Code)
}
