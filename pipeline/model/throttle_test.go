package model

import (
	"testing"
	"time"
)

// TestThrottle has a run of which half the requests fail: its retries come down to their share, and each gets its turn.
func TestThrottle(t *testing.T) {
	now := time.Unix(0, 0)
	throttle := newThrottle(0.25, 8, now)
	waits := 0
	for range 1000 {
		throttle.earn()
		if throttle.take(now) > 0 {
			waits++
		}
	}
	if want := 1000 - 100*4/3; waits != want { // a hundred are free, and each request earns a quarter of one
		t.Errorf("%d of 1000 retries had to wait, want %d", waits, want)
	}
	if got := throttle.take(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour a retry waits for %v", got)
	}
	// All that are in flight fail at once, and again, and again: nobody waits for long.
	throttle = newThrottle(0.25, 10_000, now)
	for round := range 3 {
		var longest time.Duration
		for range 10_000 {
			longest = max(longest, throttle.take(now))
		}
		if wait := round == 2; (longest > 0) != wait || longest > refill/2+time.Second {
			t.Errorf("in round %d the longest wait is %v", round, longest)
		}
	}
	if got := newThrottle(0, 8, now).take(now); got != 0 {
		t.Errorf("without a share a retry waits for %v", got)
	}
}
