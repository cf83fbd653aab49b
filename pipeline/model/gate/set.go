package gate

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"
)

// errMoved is what Gate.Acquire returns to waiters when the endpoint is broken and another one works.
var errMoved = errors.New("the endpoint is broken")

// Set is the gates of one model's endpoints. It is safe for concurrent use.
type Set struct {
	now   func() time.Time
	gates []*Gate
	names []string
}

// NewSet makes a gate for each name. An episode's endpoint depends on the names, but not on their order.
func NewSet(cfg Config, names ...string) *Set {
	s := &Set{now: cfg.Now, names: names}
	for range names {
		s.gates = append(s.gates, New(cfg))
	}
	for i, g := range s.gates {
		if len(names) > 1 {
			g.otherWorks = func() bool { return s.other(i) }
		}
	}
	return s
}

// Acquire picks an endpoint and waits at its gate. last is the endpoint of the episode's previous turn, which has the
// episode's prefix in its cache, or -1.
func (s *Set) Acquire(ctx context.Context, ticket Ticket, last int) (*Pass, int, error) {
	for {
		i := s.pick(ticket.Episode, last)
		pass, err := s.gates[i].Acquire(ctx, ticket)
		if err != errMoved {
			return pass, i, err
		}
	}
}

// moving is the cost of computing an episode's prefix at another endpoint, as a share of the latency there.
const moving = 0.25

// pick chooses the endpoint of the last turn, or the one that the episode's id hashes to, unless another one is less loaded by
// more than the cost of moving.
func (s *Set) pick(id string, last int) int {
	if len(s.gates) == 1 {
		return 0
	}
	now := s.now()
	home := last
	if home < 0 || home >= len(s.gates) || !s.gates[home].ready(now) {
		home = -1
		for i, g := range s.gates {
			if g.ready(now) && (home < 0 || s.weight(id, i) > s.weight(id, home)) {
				home = i
			}
		}
	}
	if home < 0 {
		return s.soonest()
	}
	best, least := home, s.gates[home].burden(0)
	for i, g := range s.gates {
		if i == home || !g.ready(now) {
			continue
		}
		if burden := g.burden(moving); burden < least {
			best, least = i, burden
		}
	}
	s.gates[best].claim(now)
	return best
}

// weight ranks the endpoints for an episode by rendezvous hashing, so that adding or removing an endpoint moves few episodes.
func (s *Set) weight(id string, i int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.names[i]))
	h.Write([]byte{0})
	h.Write([]byte(id))
	x := h.Sum64()
	x ^= x >> 33 // the high bits of FNV hardly depend on the last bytes, so mix them
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// soonest returns the endpoint that is tried again first, when all are broken.
func (s *Set) soonest() int {
	first := slices.MinFunc(s.gates, func(a, b *Gate) int { return a.probeAt().Compare(b.probeAt()) })
	return slices.Index(s.gates, first)
}

// other reports whether an endpoint other than the i-th works.
func (s *Set) other(i int) bool {
	for j, g := range s.gates {
		if j != i && !g.down.Load() {
			return true
		}
	}
	return false
}

// ready reports whether the endpoint works, or is due to be tried again.
func (g *Gate) ready(now time.Time) bool {
	if !g.down.Load() {
		return true
	}
	return !now.Before(g.probeAt())
}

func (g *Gate) probeAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.probe
}

// claim postpones the next try of a broken endpoint, so that only the caller tries it now.
func (g *Gate) claim(now time.Time) {
	if !g.down.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pause = min(2*g.pause, lastProbe)
	g.probe = now.Add(g.pause)
}
