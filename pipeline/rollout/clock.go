package rollout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/pipeline/model"
)

// clock measures the agent's time and ends it. It stops while a request waits for its turn to be sent.
type clock struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	left  time.Duration
	since time.Time // when it was started; zero while it stands still
}

var _ model.SettableClock = (*clock)(nil)

// startClock starts a clock that ends the context with errTimeUp when nothing is left. The caller calls cancel and
// then Stop.
func startClock(ctx context.Context, now func() time.Time, left time.Duration) (*clock, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{now: now, left: left, since: now()}
	c.timer = time.AfterFunc(left, func() { cancel(errTimeUp) })
	return c, ctx, func() { cancel(context.Canceled) }
}

// Stop makes the clock stand still.
func (c *clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return
	}
	c.timer.Stop()
	c.left -= c.now().Sub(c.since)
	c.since = time.Time{}
}

// Start lets the clock go on.
func (c *clock) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		return
	}
	c.since = c.now()
	c.timer.Reset(max(c.left, 0))
}

// Back makes the clock stand still as it stood when it was last started.
func (c *clock) Back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return
	}
	c.timer.Stop()
	c.since = time.Time{}
}

// Left is what the clock has left.
func (c *clock) Left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return c.left
	}
	return c.left - c.now().Sub(c.since)
}

// Set sets what the clock has left, whether it runs or not.
func (c *clock) Set(left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = left
	if !c.since.IsZero() {
		c.since = c.now()
		c.timer.Reset(max(left, 0))
	}
}

// agentTime is the time that an agent has left of its limit.
type agentTime struct {
	now  func() time.Time
	left time.Duration
	late bool // a step of the tools was ended as nothing was left

	charged atomic.Int64 // nanoseconds that calls put on the clock in the running step
}

// charge puts time on the clock that has not passed, from the end of the running step on.
func (t *agentTime) charge(d time.Duration) { t.charged.Add(int64(d)) }

// acting starts the agent's clock for a step of the tools, and stop stops it: the context has the time that limits.Time leaves.
// Setting up a sandbox, and waiting for a model that fails or for a place among browsers, are not on it.
func (t *agentTime) acting(ctx context.Context) (limited context.Context, stop func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.left, errTimeUp)
	began := t.now()
	return ctx, func() {
		t.left -= t.now().Sub(began) + time.Duration(t.charged.Swap(0))
		t.late = t.late || errors.Is(context.Cause(ctx), errTimeUp)
		cancel()
	}
}

// thinking runs a step of the model on the agent's clock, which stops while a request waits, and takes back what failed.
func (t *agentTime) thinking(ctx context.Context, step func(context.Context, model.Clock)) (worked time.Duration) {
	clock, ctx, cancel := startClock(ctx, t.now, t.left)
	defer cancel()
	step(ctx, clock)
	clock.Stop()
	worked = t.left - clock.Left()
	t.left -= worked
	return worked
}
