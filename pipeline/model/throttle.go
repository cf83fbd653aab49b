package model

import (
	"sync"
	"time"
)

const (
	// unearned is how many retries a run can make before it has earned any. A run with many requests in flight has more: two for
	// each request, as all may fail at the same time.
	unearned = 100
	// refill is the time in which these retries come back by themselves.
	refill = time.Minute
)

// throttle bounds the share of a run's requests that are retries: each reply earns a fraction of a retry. So a server that
// fails every second request gets retries slowly, instead of twice as many requests as one that works. Requests are delayed,
// never dropped, and at most by half of refill. It is safe for concurrent use; nil bounds nothing.
type throttle struct {
	share, most float64

	mu   sync.Mutex // guards what follows
	left float64    // retries; negative while some that were taken are not earned yet
	seen time.Time
}

// newThrottle makes one for a share of retries; 0 bounds nothing.
func newThrottle(share float64, inFlight int, now time.Time) *throttle {
	if share <= 0 {
		return nil
	}
	most := float64(max(unearned, 2*inFlight))
	return &throttle{share: share, most: most, left: most, seen: now}
}

// earn counts a reply.
func (t *throttle) earn() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = min(t.left+t.share, t.most)
}

// take uses a retry and returns how long the caller must wait for it.
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
