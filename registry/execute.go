package registry

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
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

// invocation is one run of a tool, and the context that the tool gets: sandbox operations find the meter in it. It makes the context
// with the deadline when that is first needed: most tools end without, and it costs more than the rest of the dispatch.
type invocation struct {
	parent  context.Context
	timeout time.Duration
	began   time.Time // by meter.now
	meter   meter
	env     Env

	tool   run
	result any // owned by the tool's goroutine until it ends
	err    error

	mu     sync.Mutex // guards what follows
	own    context.Context
	cancel context.CancelFunc
}

// over is the context of work that a tool has left behind.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (v *invocation) context() context.Context {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		left := v.timeout - v.meter.now().Sub(v.began)
		v.own, v.cancel = context.WithTimeoutCause(v.parent, left, errDeadline)
	}
	return v.own
}

func (v *invocation) Deadline() (time.Time, bool) { return v.context().Deadline() }
func (v *invocation) Done() <-chan struct{}       { return v.context().Done() }
func (v *invocation) Err() error                  { return v.context().Err() }

func (v *invocation) Value(key any) any {
	if key == (meterKey{}) {
		return &v.meter
	}
	return v.context().Value(key)
}

// run runs the tool in its own goroutine.
func (v *invocation) run(done chan<- struct{}) {
	v.err = errEnded
	defer func() { done <- struct{}{} }()
	v.err = attempt(func() (err error) { v.result, err = v.tool(v, &v.env); return err })
}

// wait reports whether the tool has ended.
func (v *invocation) wait(done <-chan struct{}) bool {
	timer := time.NewTimer(v.timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-v.parent.Done():
	}
	v.context() // for a tool that looks only now whether its time is up
	timer.Reset(grace)
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// end cancels work that the tool may have left behind. It reports whether the tool's time was up.
func (v *invocation) end() (late bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		v.own = over
		return false
	}
	v.cancel()
	return context.Cause(v.own) == errDeadline
}

// execute runs the tool, and does not wait for one that ignores its context. It returns the result as JSON.
func (p *prepared) execute(ctx context.Context) (text string, err error) {
	v := &p.v
	if err := attempt(func() (err error) { v.tool, err = p.tool.bind(p.args.given); return err }); err != nil {
		return "", err
	}
	v.meter.now = p.session.cfg.Now
	v.parent, v.began, v.timeout = ctx, v.meter.now(), p.tool.timeout()
	done := make(chan struct{}, 1) // buffered, as a stuck tool ends after its caller has gone
	go v.run(done)
	ended := v.wait(done)
	late := v.end()
	spent, gone := v.meter.end()
	p.call.SandboxTime = spent
	if !ended {
		return "", errStuck
	}
	p.call.ExitCode, err = v.env.ExitCode, v.err
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
		if text, err = encode(v.result); err != nil {
			return &malformed{err}
		}
		return nil
	})
	return text, err
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
