package registry

import (
	"context"
	"errors"
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
)

// outcome is the result of running a tool.
type outcome struct {
	result    any
	text      string // result as JSON
	err       error
	panicked  any
	stack     string
	malformed bool // the tool returned invalid JSON
}

// invocation is one run of a tool, and the context that the tool gets, so that sandbox operations find the meter. The context with
// the deadline is made when the tool first needs it: most tools end without, and it costs more than the rest of the dispatch.
type invocation struct {
	meter   meter
	env     Env
	parent  context.Context
	began   time.Time // by meter.now
	timeout time.Duration
	outcome outcome // owned by the tool's goroutine until done

	mu     sync.Mutex // guards what follows
	own    context.Context
	cancel context.CancelFunc
	ended  bool
}

// context returns the context with the deadline.
func (v *invocation) context() context.Context {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		left := v.timeout - v.meter.now().Sub(v.began)
		v.own, v.cancel = context.WithTimeoutCause(v.parent, left, errDeadline)
		if v.ended {
			v.cancel()
		}
	}
	return v.own
}

// end cancels work that the tool may have left behind. It reports whether the tool's time was up.
func (v *invocation) end() (late bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.cancel != nil {
		v.cancel()
		late = context.Cause(v.own) == errDeadline
	}
	return late
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

// execute runs the tool in its own goroutine, so that a tool that ignores its context cannot block the episode.
func (s *Session) execute(ctx context.Context, p *prepared) (outcome, time.Duration) {
	var o outcome
	var bound run
	if o.survive(func() { bound, o.err = p.tool.bind(p.args.given) }); bound == nil {
		return o, 0
	}
	v := &p.v
	v.meter.now = s.cfg.Now
	v.parent, v.began, v.timeout = ctx, s.cfg.Now(), p.tool.Timeout
	if v.timeout <= 0 {
		v.timeout = DefaultTimeout
	}
	w := s.waiter(v.timeout)
	go v.run(bound, w.done)
	ended := v.wait(w)
	late := v.end()
	spent, gone := v.meter.end()
	if ended {
		o, v.outcome = v.outcome, outcome{}
		p.call.ExitCode = v.env.ExitCode
		s.release(w)
	}
	switch {
	case !ended:
		w.timer.Stop()
		o.err = errStuck
	case gone != nil && o.panicked == nil && !errors.Is(o.err, sandbox.ErrGone):
		o.err = gone
	}
	if o.err != nil && late && ctx.Err() == nil && !isFailure(o.err) && errors.Is(o.err, context.DeadlineExceeded) {
		o.err = errDeadline // tools only see the context's Err
	}
	if o.err == nil && o.panicked == nil {
		o.survive(o.encode)
	}
	return o, spent
}

func (v *invocation) run(bound run, done chan<- struct{}) {
	defer func() { done <- struct{}{} }()
	o := &v.outcome
	o.survive(func() { o.result, o.err = bound(v, &v.env) })
}

// survive runs code of a tool and recovers its panic.
func (o *outcome) survive(f func()) {
	returned := false
	defer func() {
		if !returned {
			if o.panicked = recover(); o.panicked == nil {
				o.panicked = "the tool ended its goroutine"
			}
			o.stack = stack()
		}
	}()
	f()
	returned = true
}

func (o *outcome) encode() {
	o.text, o.err = encode(o.result)
	o.malformed = o.err != nil
}

// waiter is the channel and timer of a waiting call. A session reuses it for its next call.
type waiter struct {
	timer *time.Timer
	done  chan struct{} // buffered, as a stuck tool ends after its caller has gone
}

// wait reports whether the tool has ended.
func (v *invocation) wait(w *waiter) bool {
	select {
	case <-w.done:
		return true
	case <-w.timer.C:
	case <-v.parent.Done():
	}
	v.context() // for a tool that looks only now whether its time is up
	w.timer.Reset(grace)
	select {
	case <-w.done:
		return true
	case <-w.timer.C:
		return false
	}
}

func (s *Session) waiter(d time.Duration) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.waiters)
	if n == 0 {
		return &waiter{timer: time.NewTimer(d), done: make(chan struct{}, 1)}
	}
	w := s.waiters[n-1]
	s.waiters = s.waiters[:n-1]
	w.timer.Reset(d)
	return w
}

func (s *Session) release(w *waiter) {
	w.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters = append(s.waiters, w)
}

func stack() string { return string(debug.Stack()) }

func isFailure(err error) bool {
	_, ok := errors.AsType[*Failure](err)
	return ok
}
