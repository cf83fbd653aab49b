package model

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Outage is a time in which no endpoint of a model answers.
type Outage struct {
	Endpoint string // or several
	Reason   string
	Since    time.Time // when the breaker found it
	Next     time.Time // when the breaker probes again
	Over     bool
}

// suspicious is how many errors in a row make an outage likely. A run with many workers meets so many at once; in a run with
// few, a request is out of tries before.
const suspicious = 6

// breaker finds out whether there is an outage, and pauses all calls of a client during it. A nil breaker never pauses.
//
// Errors of conversations do not prove an outage: a server may fail at one conversation for ever, and the last conversations
// of a run may all be such. They make the breaker send a probe, which belongs to no conversation, and its result decides.
type breaker struct {
	limit   time.Duration // how long an outage may last before it stops the run; 0 is for ever
	observe func(Outage)
	name    string
	ask     func(context.Context) *Error // sends the probe; an error means that no endpoint answers
	now     func() time.Time
	logger  *slog.Logger
	first   time.Duration // until the second probe
	longest time.Duration // between two probes

	mu       sync.Mutex // guards the fields below
	errors   int        // since the last answer
	open     bool       // there is an outage
	since    time.Time
	last     *Error // of the outage
	probing  bool   // one call probes for all
	begun    int    // probes begun; numbers them
	finished int    // number of the last probe with a result
	dead     bool   // that result: no endpoint answers
	pause    time.Duration
	next     time.Time     // when to probe again
	change   chan struct{} // closed to wake waiting calls
}

func newBreaker(cfg Config, name string, ask func(context.Context) *Error) *breaker {
	if cfg.Outages == nil {
		return nil
	}
	return &breaker{
		limit: cfg.OutageLimit, observe: cfg.Outages, name: name, ask: ask, now: cfg.Now, logger: cfg.Logger, change: make(chan struct{}),
		first: cfg.RetryBase / 2, longest: max(cfg.RetryMax, cfg.RetryBase) / 2,
	}
}

// waitOutage waits while there is an outage. Its end gives the breaker the result of the try.
func (t *try) waitOutage(ctx context.Context) (end func(), failed *Error) {
	b := t.breaker
	if b == nil {
		return nil, nil
	}
	return func() { b.ended(t) }, b.wait(ctx, t.patient)
}

// checkOutage refuses a try that waited for its turn while an outage began.
func (t *try) checkOutage(context.Context) (end func(), failed *Error) {
	if t.breaker.paused() {
		return nil, errAgain
	}
	return nil, nil
}

// wait returns when the endpoint answers, or when the context ends. A caller without patience gets an error instead: it has
// another model to ask, so the limit does not apply to it.
func (b *breaker) wait(ctx context.Context, patient bool) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open && ctx.Err() == nil {
		now := b.now()
		rest := b.next.Sub(now)
		switch {
		case patient && b.spent(now):
			return b.fatal(now)
		case !b.probing && rest <= 0:
			b.look(ctx, nil)
			continue
		case !patient:
			return b.failure(now)
		}
		if b.probing {
			rest = b.longest
		}
		if b.limit > 0 {
			rest = min(rest, b.since.Add(b.limit).Sub(now))
		}
		b.await(ctx, rest)
	}
	return nil
}

// await waits for a change, at most for a duration. The caller holds the lock; await releases it meanwhile.
func (b *breaker) await(ctx context.Context, most time.Duration) {
	change := b.change
	b.mu.Unlock()
	defer b.mu.Lock()
	sleep(ctx, max(most, time.Millisecond), change)
}

// confirm finds out whether there is an outage, when a call has met an error that makes one likely. It needs the result of a
// probe that begins after the call of confirm; another call may send it.
func (b *breaker) confirm(ctx context.Context, failed *Error) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.begun + 1
	for !b.open && b.finished < next && ctx.Err() == nil {
		if b.probing {
			b.await(ctx, b.longest)
		} else {
			b.look(ctx, failed)
		}
	}
	return b.open || b.finished >= next && b.dead
}

// look probes for all calls. The caller holds the lock; look releases it meanwhile. suspect is the error that made an outage
// likely; nil during an outage.
func (b *breaker) look(ctx context.Context, suspect *Error) {
	b.probing = true
	b.begun++
	var failed *Error
	func() {
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			b.probing = false
			b.wake()
		}()
		failed = b.ask(ctx)
	}()
	if ctx.Err() != nil { // the probe has no result
		return
	}
	now := b.now()
	b.finished, b.dead = b.begun, failed != nil
	switch {
	case failed == nil:
		b.answered(now)
		return
	case b.open:
		b.last, b.pause = failed, min(2*b.pause, b.longest)
	case suspect == nil: // a conversation was answered meanwhile
		return
	default:
		b.open, b.since, b.last, b.pause = true, now, suspect, b.first
		b.logger.Warn("the model's endpoint does not answer; the run is paused", "endpoint", b.name, "class", suspect.Class,
			"status", suspect.Status, "reason", suspect.reason())
	}
	b.next = now.Add(max(b.pause, min(b.last.RetryAfter, MaxRetryAfter)))
	b.observe(b.outage(false))
}

// refuses returns the error of a call without patience during an outage, unless a probe is due. It saves thousands of calls
// from encoding their conversations again and again.
func (b *breaker) refuses() *Error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.open && (b.probing || now.Before(b.next)) {
		return b.failure(now)
	}
	return nil
}

// spent reports whether the outage has lasted too long.
func (b *breaker) spent(now time.Time) bool { return b.limit > 0 && now.Sub(b.since) >= b.limit }

// failure is the error of a call that does not wait.
func (b *breaker) failure(now time.Time) *Error {
	return &Error{
		Class: b.last.Class, Status: b.last.Status, cause: b.last.cause, paused: true,
		Message: fmt.Sprintf("%s, for %v", b.outage(false), now.Sub(b.since).Round(time.Second)),
	}
}

// fatal is the error that stops the run.
func (b *breaker) fatal(now time.Time) *Error {
	failed := b.failure(now)
	failed.Fatal = true
	failed.Message += "; that is the outage limit"
	return failed
}

// paused reports whether there is an outage.
func (b *breaker) paused() bool {
	paused, _, _ := b.outlook()
	return paused
}

// outlook reports whether there is an outage, whether it has lasted too long, and how long until it may be over.
func (b *breaker) outlook() (paused, overdue bool, left time.Duration) {
	if b == nil {
		return false, false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if left = b.next.Sub(now); b.probing { // a probe is under way, and may take any time
		left = b.longest
	}
	return b.open, b.open && b.spent(now), left
}

// ended takes the result of a try.
func (b *breaker) ended(t *try) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	switch {
	case t.failed == nil && t.reply.Message.Role == "", // not sent, or a panic
		t.failed != nil && (!t.asked || t.failed.Class == ClassCancelled):
	case t.failed == nil || !policies[t.failed.Class].neutral && !policies[t.failed.Class].outage:
		b.answered(now)
	case !policies[t.failed.Class].neutral:
		b.errors++
	}
}

// suspects reports whether enough errors came in a row to make an outage likely.
func (b *breaker) suspects() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errors >= suspicious
}

// answered takes an answer, reply or error, that only a working server gives. It ends an outage.
func (b *breaker) answered(now time.Time) {
	b.errors = 0
	if !b.open {
		return
	}
	b.open = false
	b.logger.Info("the model's endpoint answers again; the run goes on", "endpoint", b.name, "after", now.Sub(b.since).Round(time.Millisecond))
	b.observe(b.outage(true))
	b.wake()
}

func (b *breaker) outage(over bool) Outage {
	return Outage{Endpoint: b.name, Reason: b.last.reason(), Since: b.since, Next: b.next, Over: over}
}

// String says what is wrong with which endpoint.
func (o Outage) String() string { return fmt.Sprintf("%s does not answer (%s)", o.Endpoint, o.Reason) }

// wake makes all waiting calls look again.
func (b *breaker) wake() {
	close(b.change)
	b.change = make(chan struct{})
}

// reason is the error in a few words: "connection refused" without the address and the dialing.
func (e *Error) reason() string {
	const longest = 120
	text := e.Message
	if e.Class == ClassConnection {
		text = rootText(e)
	}
	text = lineOf(text, longest)
	if e.Status >= 300 {
		return fmt.Sprintf("status %d: %s", e.Status, text)
	}
	return text
}
