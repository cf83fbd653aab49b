package mcp

import (
	"sync"
	"time"
)

const (
	tooMany = 3 // failures in a row
	resting = time.Minute
)

// breaker leaves a server alone for a while that fails in all episodes; then one of them tries. A nil breaker never does.
type breaker struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	fails int
	until time.Time
}

// allows reports whether the server may be asked.
func (b *breaker) allows() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails < tooMany {
		return true
	}
	if b.now().Before(b.until) {
		return false
	}
	b.until = b.now().Add(resting) // the others wait for how this one goes
	return true
}

// result says how it went.
func (b *breaker) result(ok bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.fails = 0
		return
	}
	if b.fails++; b.fails >= tooMany {
		b.until = b.now().Add(resting)
	}
}
