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
	Since    time.Time // when it was found
	Next     time.Time // when it is tried again
	Over     bool
}

// suspicious is how many errors in a row make an outage likely. It takes a run with many workers no time to meet so many; one
// with few has requests that are out of tries before.
const suspicious = 6

// breaker finds out whether there is an outage, and pauses all calls of a client during it. It is nil where nothing
// pauses.
//
// Errors of conversations are never proof: a server may fail at one conversation for ever, and the last ones of a run may
// all be such. They are a reason to ask for what is no part of any conversation, and the answer to that decides.
type breaker struct {
	limit   time.Duration // that an outage may last until the run is stopped; 0 is for ever
	observe func(Outage)
	name    string
	ask     func(context.Context) *Error // asks that; an error means that no endpoint answers
	now     func() time.Time
	logger  *slog.Logger
	first   time.Duration // until it is asked again
	longest time.Duration // between two askings

	mu     sync.Mutex // guards what follows
	errors int        // since the last answer
	open   bool
	since  time.Time
	last   *Error // of the outage
	asking bool   // one call asks for all
	asked  int    // how often that was begun
	told   int    // which of them was the last to come to something
	gone   bool   // what it came to: no endpoint answers
	pause  time.Duration
	next   time.Time     // when it is asked again
	change chan struct{} // closed when something changed for those who wait
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

// sitOut waits while there is an outage, and tells in the end whether the endpoint answered.
func (c *Client) sitOut(ctx context.Context, t *try) (end func(), failed *Error) {
	b := t.breaker
	if b == nil {
		return nil, nil
	}
	return func() { b.ended(t) }, b.wait(ctx, t.patient)
}

// unless takes a try back that waited for its turn while an outage began.
func (c *Client) unless(_ context.Context, t *try) (end func(), failed *Error) {
	if t.breaker.paused() {
		return nil, errAgain
	}
	return nil, nil
}

// wait returns when there is no outage, or with the context. A caller without patience gets an error instead; it has another
// model to ask, and the limit is none of its concern.
func (b *breaker) wait(ctx context.Context, patient bool) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open && ctx.Err() == nil {
		now := b.now()
		rest := b.next.Sub(now)
		switch {
		case patient && b.spent(now):
			return b.fatal(now)
		case !b.asking && rest <= 0:
			b.look(ctx, nil)
			continue
		case !patient:
			return b.failure(now)
		}
		if b.asking {
			rest = b.longest
		}
		if b.limit > 0 {
			rest = min(rest, b.since.Add(b.limit).Sub(now))
		}
		b.await(ctx, rest)
	}
	return nil
}

// await waits for a change, for a while at most. The caller holds the lock, which is free meanwhile.
func (b *breaker) await(ctx context.Context, most time.Duration) {
	change := b.change
	b.mu.Unlock()
	defer b.mu.Lock()
	timer := time.NewTimer(max(most, time.Millisecond))
	defer timer.Stop()
	select {
	case <-change:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// confirm finds out whether there is an outage, where a call has met an error that makes it likely. What was asked before
// that says nothing about it, and what was asked by another call since says as much.
func (b *breaker) confirm(ctx context.Context, failed *Error) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.asked + 1
	for !b.open && b.told < next && ctx.Err() == nil {
		if b.asking {
			b.await(ctx, b.longest)
		} else {
			b.look(ctx, failed)
		}
	}
	return b.open || b.told >= next && b.gone
}

// look asks on behalf of all. The caller holds the lock, which is free meanwhile. suspect is the error that gives a reason
// to ask; nil in an outage.
func (b *breaker) look(ctx context.Context, suspect *Error) {
	b.asking = true
	b.asked++
	var failed *Error
	func() {
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			b.asking = false
			b.wake()
		}()
		failed = b.ask(ctx)
	}()
	if ctx.Err() != nil { // it says nothing
		return
	}
	now := b.now()
	b.told, b.gone = b.asked, failed != nil
	switch {
	case failed == nil:
		b.well(now)
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
	b.tell(false)
}

// refuses is the error of a call without patience in an outage which it is not the one to end: it is known before the
// conversation is written, which thousands ask for again and again.
func (b *breaker) refuses() *Error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.open && (b.asking || now.Before(b.next)) {
		return b.failure(now)
	}
	return nil
}

// spent says whether the outage has lasted too long.
func (b *breaker) spent(now time.Time) bool { return b.limit > 0 && now.Sub(b.since) >= b.limit }

// failure is the error of a call that does not wait.
func (b *breaker) failure(now time.Time) *Error {
	return &Error{
		Class: b.last.Class, Status: b.last.Status, cause: b.last.cause, paused: true,
		Message: fmt.Sprintf("%s, for %v", b.outage(), now.Sub(b.since).Round(time.Second)),
	}
}

// fatal is the error that stops the run.
func (b *breaker) fatal(now time.Time) *Error {
	failed := b.failure(now)
	failed.Fatal = true
	failed.Message += "; that is the outage limit"
	return failed
}

// paused says whether there is an outage.
func (b *breaker) paused() bool {
	paused, _, _ := b.outlook()
	return paused
}

// outlook says whether there is an outage, whether it has lasted too long, and how long it is until it may be over.
func (b *breaker) outlook() (paused, overdue bool, left time.Duration) {
	if b == nil {
		return false, false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if left = b.next.Sub(now); b.asking { // the answer comes when it comes
		left = b.longest
	}
	return b.open, b.open && b.spent(now), left
}

// ended takes what became of a try.
func (b *breaker) ended(t *try) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	switch {
	case t.failed == nil && t.reply.Message.Role == "", // not sent, or a bug of ours panics
		t.failed != nil && (!t.asked || t.failed.Class == ClassCancelled):
	case t.failed == nil || !policies[t.failed.Class].neutral && !policies[t.failed.Class].outage:
		b.well(now)
	case !policies[t.failed.Class].neutral:
		b.errors++
	}
}

// suspects says whether so many errors came in a row that an outage is likely.
func (b *breaker) suspects() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errors >= suspicious
}

// well takes an answer, good or bad, that only a server that works can give.
func (b *breaker) well(now time.Time) {
	b.errors = 0
	if !b.open {
		return
	}
	b.open = false
	b.logger.Info("the model's endpoint answers again; the run goes on", "endpoint", b.name, "after", now.Sub(b.since).Round(time.Millisecond))
	b.tell(true)
	b.wake()
}

func (b *breaker) tell(over bool) {
	b.observe(Outage{Endpoint: b.name, Reason: b.last.reason(), Since: b.since, Next: b.next, Over: over})
}

func (b *breaker) outage() string {
	return Outage{Endpoint: b.name, Reason: b.last.reason()}.String()
}

// String says what is wrong with which endpoint.
func (o Outage) String() string { return fmt.Sprintf("%s does not answer (%s)", o.Endpoint, o.Reason) }

// wake lets everyone who waits look again.
func (b *breaker) wake() {
	close(b.change)
	b.change = make(chan struct{})
}

// reason is the error in a few words: "connection refused" without the dialing around it.
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
