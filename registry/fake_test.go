package registry_test

import (
	"context"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
)

// box is a sandbox whose operations take the given times. All files exist but those of /new; /link leads to /target.
type box struct {
	sandbox.Sandbox
	start, wait, stat time.Duration
	err               error
	layout            sandbox.Layout
}

func (b *box) Layout() sandbox.Layout { return b.layout }

func (b *box) Start(context.Context, sandbox.Command) (sandbox.Process, error) {
	time.Sleep(b.start)
	if b.err != nil {
		return nil, b.err
	}
	return &process{wait: b.wait}, nil
}

func (b *box) Files() sandbox.Files { return &files{box: b} }

type process struct {
	sandbox.Process
	wait time.Duration
}

func (p *process) Wait(context.Context) (sandbox.Exit, error) {
	time.Sleep(p.wait)
	return sandbox.Exit{}, nil
}

type files struct {
	sandbox.Files
	box *box
}

func (f *files) Stat(_ context.Context, path string) (sandbox.Info, error) {
	time.Sleep(f.box.stat)
	if strings.HasPrefix(path, "/new") {
		return sandbox.Info{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	if rest, ok := strings.CutPrefix(path, "/link"); ok {
		path = "/target" + rest
	}
	return sandbox.Info{Path: path}, f.box.err
}

func (f *files) List(context.Context, string) ([]sandbox.Info, error) { return nil, f.box.err }

// opener counts how often the sandbox is opened.
type opener struct {
	box   *box
	err   error
	calls atomic.Int32
}

func (o *opener) open(context.Context) (sandbox.Sandbox, error) {
	o.calls.Add(1)
	if o.err != nil {
		return nil, o.err
	}
	return o.box, nil
}
