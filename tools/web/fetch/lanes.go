package fetch

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	perRun   = 64
	perHost  = 2
	distance = 500 * time.Millisecond // between polite requests to a host
	slowest  = 10 * time.Second       // that a site may want in place of it
	maxLarge = 64 << 20               // bytes of all bodies above headSize, together
	maxLanes = 1024                   // hosts that are remembered
)

// lanes bound how much is asked for at a time, of all hosts and of each.
type lanes struct {
	run   *semaphore.Weighted // requests
	large *semaphore.Weighted // bytes

	mu    sync.Mutex // guards what follows
	hosts map[string]*lane
}

type lane struct {
	users int                 // who wait or are in it; guarded by lanes.mu
	slots *semaphore.Weighted // requests
	pace  *rate.Limiter
}

func newLanes() *lanes {
	return &lanes{run: semaphore.NewWeighted(perRun), large: semaphore.NewWeighted(maxLarge), hosts: map[string]*lane{}}
}

// enter waits for a turn with a host. The place is held until leave.
func (l *lanes) enter(ctx context.Context, host string, polite bool) (leave func(), err error) {
	lane := l.of(host)
	// First the host: who waits for a slow host takes no place from others.
	if err = lane.slots.Acquire(ctx, 1); err == nil {
		if polite {
			err = pause(ctx, lane.pace.Reserve())
		}
		if err == nil {
			err = l.run.Acquire(ctx, 1)
		}
		if err != nil {
			lane.slots.Release(1)
		}
	}
	if err != nil {
		l.left(lane)
		return nil, context.Cause(ctx)
	}
	return func() { l.run.Release(1); lane.slots.Release(1); l.left(lane) }, nil
}

// left says that a user of a lane is gone.
func (l *lanes) left(lane *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane.users--
}

// of returns the lane of a host, for one more user.
func (l *lanes) of(host string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hosts) >= maxLanes {
		maps.DeleteFunc(l.hosts, func(_ string, lane *lane) bool { return lane.users == 0 && lane.pace.Tokens() >= 1 })
	}
	if l.hosts[host] == nil {
		l.hosts[host] = &lane{slots: semaphore.NewWeighted(perHost), pace: rate.NewLimiter(rate.Every(distance), 1)}
	}
	l.hosts[host].users++
	return l.hosts[host]
}

// slow keeps the distance between polite requests that a host asks for, within bounds.
func (l *lanes) slow(host string, wanted time.Duration) {
	lane := l.of(host)
	if every := rate.Every(min(max(wanted, distance), slowest)); lane.pace.Limit() != every {
		lane.pace.SetLimit(every)
	}
	l.left(lane)
}

func pause(ctx context.Context, r *rate.Reservation) error {
	timer := time.NewTimer(r.Delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return context.Cause(ctx)
	}
}
