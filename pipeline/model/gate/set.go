package gate

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"
)

// errMoved tells one who waited that the endpoint is broken and another one is not.
var errMoved = errors.New("the endpoint is broken")

// Set is the gates of one model's endpoints. It is safe for concurrent use.
type Set struct {
	now   func() time.Time
	gates []*Gate
	names []string
}

// NewSet makes a gate for each name. The names are what an episode's place hangs on: their order does not matter.
func NewSet(cfg Config, names ...string) *Set {
	s := &Set{now: cfg.Now, names: names}
	for range names {
		s.gates = append(s.gates, New(cfg))
	}
	for i, g := range s.gates {
		g.elsewhere = func() bool { return s.other(i) }
	}
	return s
}

// Gate is the i-th endpoint's.
func (s *Set) Gate(i int) *Gate { return s.gates[i] }

// Acquire picks an endpoint and waits at its gate. last is the endpoint of the episode's turn before, or -1: it has
// the episode's prefix in its cache.
func (s *Set) Acquire(ctx context.Context, ticket Ticket, last int) (*Pass, int, error) {
	for {
		i := s.pick(ticket.Episode, last)
		pass, err := s.gates[i].Acquire(ctx, ticket)
		if err != errMoved {
			return pass, i, err
		}
	}
}

// crowded is how much more load than the least loaded endpoint an episode's own one may have: waiting costs less than
// computing a prefix again.
const crowded = 1.5

// pick chooses the endpoint of the last turn, or the one that the episode's name falls to, unless that is broken or
// crowded; then the least loaded one.
func (s *Set) pick(id string, last int) int {
	if len(s.gates) == 1 {
		return 0
	}
	now := s.now()
	home, least := last, -1
	var loads = make([]float64, len(s.gates))
	for i, g := range s.gates {
		if !g.ready(now) {
			loads[i] = -1
			continue
		}
		loads[i] = g.Load()
		if least < 0 || loads[i] < loads[least] || loads[i] == loads[least] && s.weight(id, i) > s.weight(id, least) {
			least = i
		}
	}
	if least < 0 {
		return s.soonest()
	}
	if home < 0 || home >= len(s.gates) || loads[home] < 0 {
		home = least
		for i := range s.gates {
			if loads[i] >= 0 && s.weight(id, i) > s.weight(id, home) {
				home = i
			}
		}
	}
	if loads[home] > 1 && loads[home] > crowded*loads[least] {
		home = least
	}
	s.gates[home].claim(now)
	return home
}

// weight ranks the endpoints for an episode: rendezvous hashing, so that one endpoint more or less moves few.
func (s *Set) weight(id string, i int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.names[i]))
	h.Write([]byte{0})
	h.Write([]byte(id))
	x := h.Sum64() // whose high bits hardly hang on the last bytes
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// soonest is the endpoint that is tried again first, when all are broken.
func (s *Set) soonest() int {
	first := slices.MinFunc(s.gates, func(a, b *Gate) int { return a.probeAt().Compare(b.probeAt()) })
	return slices.Index(s.gates, first)
}

// other says whether an endpoint other than the i-th works.
func (s *Set) other(i int) bool {
	for j, g := range s.gates {
		if j != i && !g.down.Load() {
			return true
		}
	}
	return false
}

// ready says whether the endpoint works, or is due to be tried again.
func (g *Gate) ready(now time.Time) bool {
	if !g.down.Load() {
		return true
	}
	return !now.Before(g.probeAt())
}

func (g *Gate) probeAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trouble.probe
}

// claim makes the caller the only one who tries a broken endpoint again.
func (g *Gate) claim(now time.Time) {
	if !g.down.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &g.trouble
	t.pause = min(max(2*t.pause, firstProbe), lastProbe)
	t.probe = now.Add(t.pause)
}
