package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"trajgen/sandbox"
)

// grace is how long a call waits for a tool to notice that its time is up. A tool that has not returned by then is stuck: the call
// returns without it, and the episode ends with a tool_error, as the goroutine may still have effects.
const grace = 5 * time.Second

var (
	errDeadline = errors.New("the call's time is up")
	errStuck    = errors.New("the tool ignores that its time is up")
	errEnded    = &crash{value: "the tool ended its goroutine"}
)

// crash is the error of code that panicked, or ended its goroutine.
type crash struct {
	value any
	stack string
}

func (c *crash) Error() string { return fmt.Sprint(c.value) }

// attempt runs code of a tool, a hook or a library, and turns its panic into a crash.
func attempt(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &crash{value, string(debug.Stack())}
		}
	}()
	return f()
}

// malformed is the error of a result that has no JSON text.
type malformed struct{ cause error }

func (m *malformed) Error() string { return m.cause.Error() }

// outcome is what a tool returned.
type outcome struct {
	result any
	err    error
}

// execute runs the tool in a goroutine of its own, and does not wait for one that ignores its context. It returns the result as JSON.
func (p *prepared) execute(ctx context.Context) (text string, err error) {
	var tool run
	if err := attempt(func() (err error) { tool, err = p.tool.bind(p.args.given); return err }); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.tool.timeout(), errDeadline)
	ended := make(chan outcome, 1) // buffered, as a stuck tool ends after its caller has gone
	go func() {
		got := outcome{err: errEnded}
		defer func() { ended <- got }()
		got.err = attempt(func() (err error) { got.result, err = tool(limited, &p.env); return err })
	}()
	got, ok := wait(limited, ended)
	late := context.Cause(limited) == errDeadline
	cancel() // work that the tool may have left behind ends, too
	var gone error
	p.call.SandboxTime, p.call.Images, gone = p.meter.end()
	if !ok {
		return "", errStuck
	}
	p.call.ExitCode, err = p.env.ExitCode, got.err
	if p.env.Source != nil {
		if p.call.Source, err = json.Marshal(p.env.Source); err != nil {
			return "", &malformed{err}
		}
		err = got.err
	}
	_, crashed := errors.AsType[*crash](err)
	switch {
	case crashed:
	case gone != nil && !errors.Is(err, sandbox.ErrGone):
		err = gone
	case late && ctx.Err() == nil && !isFailure(err) && errors.Is(err, context.DeadlineExceeded):
		err = errDeadline // tools only see the context's Err
	}
	if err != nil {
		return "", err
	}
	err = attempt(func() error {
		if text, err = encode(got.result); err != nil {
			return &malformed{err}
		}
		return nil
	})
	return text, err
}

// wait returns what the tool returned; ok is false for one that ignores the end of its context.
func wait(ctx context.Context, ended <-chan outcome) (got outcome, ok bool) {
	select {
	case got = <-ended:
		return got, true
	case <-ctx.Done():
	}
	select {
	case got = <-ended:
		return got, true
	case <-time.After(grace):
		return outcome{}, false
	}
}

// timeout is the most time that a call takes.
func (t *Tool) timeout() time.Duration {
	if t.Timeout > 0 {
		return t.Timeout
	}
	return DefaultTimeout
}

func isFailure(err error) bool {
	_, ok := errors.AsType[*Failure](err)
	return ok
}
