package model

import (
	"sync"
	"time"
)

const (
	// freely is how many retries a run has before they are counted against its requests. A run with many requests in
	// flight has more of them: each may fail twice at the same time.
	freely = 100
	// refill is the time in which they come back by themselves.
	refill = time.Minute
)

// throttle bounds the share of a run's requests that are retries: each that goes well earns a share of one. A server
// that fails one request in two is then asked slowly, rather than twice as often as one that works; no request is lost
// for it, and none waits longer than half of refill. It is safe for concurrent use; nil bounds nothing.
type throttle struct {
	share, most float64

	mu   sync.Mutex // guards what follows
	left float64    // retries; below 0 when some have been promised that are not earned yet
	seen time.Time
}

// newThrottle makes one for a share of retries; 0 bounds nothing.
func newThrottle(share float64, inFlight int, now time.Time) *throttle {
	if share <= 0 {
		return nil
	}
	most := float64(max(freely, 2*inFlight))
	return &throttle{share: share, most: most, left: most, seen: now}
}

// earn counts a request that went well.
func (t *throttle) earn() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = min(t.left+t.share, t.most)
}

// take uses a retry and says how long it has to wait for it.
func (t *throttle) take(now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	each := refill.Seconds() / t.most
	t.left = min(t.left+now.Sub(t.seen).Seconds()/each, t.most) - 1
	t.seen = now
	return seconds(-t.left * each)
}
