package egress

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// allPlaces bounds the connections of all sandboxes together, so that enough file descriptors are left for the program's own
// files.
var allPlaces = sync.OnceValue(func() chan struct{} {
	const each = 6 // descriptors: both ends, and two pipes for splice
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		limit.Cur = 1024
	}
	return make(chan struct{}, max(16, min(uint64(limit.Cur), 1<<20)/2/each))
})

// A sandbox that floods this program with connections or questions must not keep it busy: a burst is served at once, and then
// so many a second.
const (
	burst     = 2000
	perSecond = 500
)

// pace is a token bucket, for one goroutine.
type pace struct {
	left float64
	last time.Time
}

// take takes a token. Without one, it returns how long to wait.
func (p *pace) take(now time.Time) time.Duration {
	if p.last.IsZero() {
		p.left = burst
	}
	p.left = min(burst, p.left+perSecond*max(0, now.Sub(p.last).Seconds()))
	p.last = now
	if p.left >= 1 {
		p.left--
		return 0
	}
	return time.Duration((1 - p.left) / perSecond * float64(time.Second))
}
