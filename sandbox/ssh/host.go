package ssh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"trajgen/sandbox"
)

const (
	// connectTime bounds connecting, uploading the agent and starting it.
	connectTime = 2 * time.Minute
	// Backoff for a host that could not be reached; it doubles with each failure.
	firstPause = 500 * time.Millisecond
	lastPause  = time.Minute
)

// errUnreachable means that a host has no connection and backoff keeps us from making one.
var errUnreachable = errors.New("the host cannot be reached")

// host is a machine that sandboxes are on.
type host struct {
	target target
	config *config
	logger *slog.Logger
	// turn is held by the goroutine that checks or makes the connection.
	turn chan struct{}
	link *link // guarded by turn

	mu       sync.Mutex // guards what follows
	level    sandbox.Level
	boxes    int
	attempts int
	pause    time.Duration
	again    time.Time // when to try again
	failure  error     // of the last attempt
	closed   bool
}

func newHost(t target, c *config, logger *slog.Logger) *host {
	return &host{target: t, config: c, logger: logger, turn: make(chan struct{}, 1), level: sandbox.LevelNone}
}

// promise sets the isolation level that later connections must reach.
func (h *host) promise(level sandbox.Level) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.level = level
}

func (h *host) join() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boxes++
}

func (h *host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boxes--
}

// load returns how many sandboxes the host has or is opening; a host in backoff comes last.
func (h *host) load() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.again) {
		return h.boxes + 1<<30
	}
	return h.boxes
}

// open opens a sandbox, and once more over a new connection when the one that it used turned out to be lost: what the lost
// one had opened has ended with it.
func (h *host) open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	l, err := h.connected(ctx)
	if err != nil {
		return nil, err
	}
	sb, err := l.relay.Open(ctx, spec)
	if !errors.Is(err, sandbox.ErrGone) || !l.lost() || spec.From != nil {
		return sb, err
	}
	if l, err = h.connected(ctx); err != nil {
		return nil, err
	}
	return l.relay.Open(ctx, spec)
}

// connected returns the connection, which it makes again if it was lost. Concurrent calls share the result.
func (h *host) connected(ctx context.Context) (*link, error) {
	h.mu.Lock()
	seen := h.attempts
	h.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if h.link != nil && !h.link.lost() {
		return h.link, nil
	}
	h.mu.Lock()
	closed, shared, again := h.closed, h.attempts != seen, h.again
	failure := h.failure
	h.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	}
	if shared && failure != nil {
		return nil, failure
	}
	select {
	case <-time.After(time.Until(again)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return h.renew(ctx)
}

func (h *host) renew(ctx context.Context) (*link, error) {
	if h.link != nil {
		h.logger.Warn("the connection was lost and is made again", "said", h.link.agent.said())
		h.link.abandon()
		h.link = nil
	}
	l, err := connect(ctx, h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	h.failure = nil
	if err == nil && !l.relay.Guarantees().Level.AtLeast(h.level) {
		err = fmt.Errorf("isolation is now %s and was %s: %v", l.relay.Guarantees().Level, h.level, l.relay.Guarantees().Missing)
		err = errors.Join(err, l.close())
	}
	if err != nil {
		h.failure = fmt.Errorf("%s: %w: %w", h.target, errUnreachable, err)
		h.pause = min(max(2*h.pause, firstPause), lastPause)
		h.again = time.Now().Add(h.pause)
		return nil, h.failure
	}
	h.link, h.pause, h.again = l, 0, time.Time{}
	return l, nil
}

// close ends the connection and all that uses it.
func (h *host) close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.link == nil {
		return nil
	}
	if err := h.link.close(); err != nil {
		return fmt.Errorf("close the connection to %s: %w", h.target, err)
	}
	return nil
}
