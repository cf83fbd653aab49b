package gate_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/model/gate"
)

// server is a simulated endpoint. Everything happens in the time of a synctest bubble.
type server struct {
	rate, burst float64           // of a bucket of permissions; rate 0 has none
	slots       int               // requests worked on at once; 0 is without bound
	queue       int               // requests that wait for a slot; those beyond are refused
	latency     time.Duration     // of one request, once it is worked on
	spread      float64           // of the latency, by chance: from 1-spread to 1+spread times
	slower      func(int) float64 // times the latency, with so many worked on
	once        bool              // slower counts when a request begins; otherwise all the time
	refusal     time.Duration     // until a refusal is sent
	wish        time.Duration     // Retry-After
	headers     bool              // tells what is left in the bucket
	whim        float64           // share of requests that are refused whatever is sent
	busyKind    gate.Kind         // of those; 0 is Limited

	mu      *sync.Mutex
	rng     *rand.Rand
	left    float64
	at      time.Time
	busy    int
	waiting []chan struct{}
	down    bool // no connection
}

func (s *server) begin(seed uint64) {
	if s.refusal == 0 {
		s.refusal = 10 * time.Millisecond
	}
	s.rng, s.left, s.at = rand.New(rand.NewPCG(seed, 2)), s.burst, time.Now()
	s.mu, s.busy, s.waiting, s.down = &sync.Mutex{}, 0, nil, false
}

// set changes the server under way.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refill()
	change()
	s.admit()
}

// admit lets those in who wait. The caller holds the lock.
func (s *server) admit() {
	for len(s.waiting) > 0 && s.busy < s.slots {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.busy++
	}
}

func (s *server) refill() {
	now := time.Now()
	s.left = math.Min(s.left+s.rate*now.Sub(s.at).Seconds(), s.burst)
	s.at = now
}

// ask plays one request.
func (s *server) ask() gate.Result {
	began := time.Now()
	refused := func(kind gate.Kind, headers gate.Budget) gate.Result {
		s.mu.Unlock()
		time.Sleep(s.refusal)
		return gate.Result{Kind: kind, Requests: headers}
	}
	s.mu.Lock()
	var headers gate.Budget
	if s.down {
		return refused(gate.Failed, headers)
	}
	if s.rng.Float64() < s.whim {
		return refused(max(s.busyKind, gate.Limited), headers)
	}
	if s.rate > 0 {
		s.refill()
		empty := s.left < 1
		if !empty {
			s.left--
		}
		if s.headers {
			headers = gate.Budget{Limit: s.burst, Remaining: math.Floor(s.left), Reset: time.Duration((s.burst - s.left) / s.rate * float64(time.Second))}
		}
		if empty {
			return refused(gate.Limited, headers)
		}
	}
	if s.slots > 0 && s.busy >= s.slots {
		if len(s.waiting) >= s.queue {
			return refused(gate.Busy, headers)
		}
		turn := make(chan struct{})
		s.waiting = append(s.waiting, turn)
		s.mu.Unlock()
		<-turn
		s.mu.Lock()
	} else {
		s.busy++
	}
	takes := time.Duration(float64(s.latency) * (1 + s.spread*(2*s.rng.Float64()-1)))
	const parts = 10
	for part := 0; part < parts; part++ {
		slower, step := 1.0, takes/parts
		if s.slower != nil {
			slower = s.slower(s.busy)
		}
		if s.once || s.slower == nil {
			part, step = parts, takes
		}
		s.mu.Unlock()
		time.Sleep(time.Duration(float64(step) * slower))
		s.mu.Lock()
	}
	s.busy--
	s.admit()
	s.mu.Unlock()
	return gate.Result{Kind: gate.OK, Latency: time.Since(began), Work: 100, Requests: headers}
}

// gatekeeper is what a simulation has in front of its servers.
type gatekeeper interface {
	// enter waits for a place at one of the servers; done gives it back.
	enter(ctx context.Context, episode string, turn, last int) (done func(gate.Result), at int, err error)
}

// ours is a Set.
type ours struct{ *gate.Set }

func (o ours) enter(ctx context.Context, episode string, turn, last int) (func(gate.Result), int, error) {
	pass, at, err := o.Acquire(ctx, gate.Ticket{Episode: episode, Turn: turn, Since: time.Now()}, last)
	if err != nil {
		return nil, at, err
	}
	return pass.Done, at, nil
}

// fixed lets so many in at once.
type fixed chan struct{}

func (f fixed) enter(ctx context.Context, _ string, _, _ int) (func(gate.Result), int, error) {
	select {
	case f <- struct{}{}:
		return func(gate.Result) { <-f }, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// tally is what a simulation came to after settled.
type tally struct{ good, refused, all int }

// settled is the time that a limiter has to find out what an endpoint takes.
const settled = 15 * time.Second

// play has workers play episodes of four turns for a time, with the pauses before retries that the client makes.
func play(k gatekeeper, servers []*server, workers int, lasts time.Duration, during func()) tally {
	began := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), lasts)
	defer stop()
	var result tally
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		rng := rand.New(rand.NewPCG(uint64(w), 7))
		all.Go(func() {
			for n := 0; ; n++ {
				episode, last := fmt.Sprint(w, "/", n), -1
				for turn := 0; turn < 4; {
					tries := 0
				again:
					done, at, err := k.enter(ctx, episode, turn, last)
					if err != nil {
						return
					}
					sent := time.Since(began)
					r := servers[at].ask()
					done(r)
					mu.Lock()
					if sent > settled && ctx.Err() == nil {
						result.all++
						if r.Kind == gate.Limited || r.Kind == gate.Busy {
							result.refused++
						}
					}
					if time.Since(began) > settled && ctx.Err() == nil && r.Kind == gate.OK {
						result.good++
					}
					mu.Unlock()
					if r.Kind == gate.OK {
						turn, last = turn+1, at
						continue
					}
					pause := time.Duration(rng.Float64() * float64(min(2*time.Second<<min(tries, 8), time.Minute)))
					tries++
					var wish time.Duration
					if r.Kind != gate.Failed {
						wish = servers[at].wish
					}
					select {
					case <-time.After(max(pause, wish+time.Duration(rng.Float64()*float64(wish)/10))):
					case <-ctx.Done():
						return
					}
					goto again
				}
			}
		})
	}
	if during != nil {
		all.Go(during)
	}
	all.Wait()
	return result
}

// scenario is endpoints with a limit of some kind.
type scenario struct {
	name    string
	servers []server
	workers int
	whim    float64                 // share of refusals that are random
	during  func(servers []*server) // changes the servers under way
	lasts   time.Duration           // 0 is two minutes
}

func scenarios() []scenario {
	const ms, second = time.Millisecond, time.Second
	var all []scenario
	add := func(name string, workers int, servers ...server) *scenario {
		all = append(all, scenario{name: name, workers: workers, servers: servers})
		return &all[len(all)-1]
	}
	for _, latency := range []time.Duration{50 * ms, 500 * ms, 2 * second} {
		for _, headers := range []bool{false, true} {
			for _, wish := range []time.Duration{0, second} {
				add(fmt.Sprintf("20 a second, latency %v, headers %v, retry after %v", latency, headers, wish), 64,
					server{rate: 20, burst: 20, latency: latency, spread: 0.5, headers: headers, wish: wish})
			}
		}
	}
	add("20 a second without bursts", 64, server{rate: 20, burst: 2, latency: 50 * ms})
	add("100 a second", 256, server{rate: 100, burst: 50, latency: 500 * ms, spread: 0.5})
	for _, slots := range []int{8, 32, 256} {
		for _, wish := range []time.Duration{0, second} {
			add(fmt.Sprintf("%d at once, retry after %v", slots, wish), 2*slots, server{slots: slots, latency: second, spread: 0.5, wish: wish})
		}
		add(fmt.Sprintf("%d at once, of equal length", slots), 2*slots, server{slots: slots, latency: second})
		add(fmt.Sprintf("%d at once, as many wait", slots), 4*slots, server{slots: slots, queue: slots, latency: second, spread: 0.5})
	}
	for _, share := range []float64{0.005, 0.02, 0.1, 0.3} {
		for kind, wish := range map[gate.Kind]time.Duration{gate.Limited: second, gate.Busy: 0} {
			add(fmt.Sprintf("%v %% refused at random, kind %d, retry after %v", 100*share, kind, wish), 64,
				server{latency: second, spread: 0.5, whim: share, busyKind: kind, wish: wish}).whim = share
		}
	}
	add("2 % refused at random, 32 at once", 128, server{slots: 32, latency: second, spread: 0.5, whim: 0.02}).whim = 0.02
	add("10 % refused at random, 200 ms", 64, server{latency: 200 * ms, spread: 0.5, whim: 0.1, wish: second}).whim = 0.1
	for _, once := range []bool{true, false} {
		add(fmt.Sprintf("degrades beyond 16, once %v", once), 64, server{latency: second, spread: 0.5, once: once,
			slower: func(n int) float64 { return 1 + math.Pow(float64(n)/16, 2) }})
		add(fmt.Sprintf("degrades steeply beyond 24, once %v", once), 128, server{latency: 500 * ms, spread: 0.5, once: once,
			slower: func(n int) float64 { return 1 + math.Pow(float64(n)/24, 3) }})
		add(fmt.Sprintf("a cliff at 48, once %v", once), 64, server{latency: second, spread: 0.5, once: once,
			slower: func(n int) float64 {
				if n > 48 {
					return 10
				}
				return 1
			}})
		add(fmt.Sprintf("a cliff at 48 for 256, once %v", once), 256, server{latency: 300 * ms, spread: 0.5, once: once,
			slower: func(n int) float64 {
				if n > 48 {
					return 20
				}
				return 1
			}})
		add(fmt.Sprintf("a batch, once %v", once), 256, server{latency: second, spread: 0.5, once: once,
			slower: func(n int) float64 { return 1 + float64(n)/64 }})
	}
	add("steady", 64, server{latency: second, spread: 0.8})
	halved := func(s []*server) {
		time.Sleep(40 * second)
		s[0].set(func() { s[0].slots, s[0].rate = s[0].slots/2, s[0].rate/2 })
		time.Sleep(40 * second)
		s[0].set(func() { s[0].slots, s[0].rate = s[0].slots*2, s[0].rate*2 })
	}
	add("32 at once, halved and back", 64, server{slots: 32, latency: second, spread: 0.5}).during = halved
	add("32 at once, 8 wait, halved and back", 128, server{slots: 32, queue: 8, latency: second, spread: 0.5}).during = halved
	add("32 at once, all wait, halved and back", 128, server{slots: 32, queue: 1000, latency: second, spread: 0.5}).during = halved
	add("40 a second, halved and back", 64, server{rate: 40, burst: 20, latency: 500 * ms, spread: 0.5}).during = halved
	add("two endpoints of 63 and 16", 128, server{slots: 63, latency: second, spread: 0.5}, server{slots: 16, latency: second, spread: 0.5})
	add("two endpoints of 63 and 16 that queue", 128, server{slots: 63, queue: 1000, latency: second, spread: 0.5},
		server{slots: 16, queue: 1000, latency: second, spread: 0.5})
	add("two endpoints of 63 and 16 a second", 128, server{rate: 63, burst: 20, latency: 500 * ms, spread: 0.5},
		server{rate: 16, burst: 20, latency: 500 * ms, spread: 0.5})
	add("five unequal endpoints", 256, server{slots: 64, latency: second, spread: 0.5}, server{slots: 32, queue: 1000, latency: second, spread: 0.5},
		server{slots: 8, latency: second, spread: 0.5}, server{rate: 20, burst: 20, latency: 500 * ms, spread: 0.5}, server{slots: 4, latency: second, spread: 0.5})
	dies := func(s []*server) {
		time.Sleep(40 * second)
		s[0].set(func() { s[0].down = true })
		time.Sleep(20 * second)
		s[0].set(func() { s[0].down = false })
	}
	add("one of two dies and returns", 128, server{slots: 32, latency: second, spread: 0.5}, server{slots: 32, latency: second, spread: 0.5}).during = dies
	add("dies and returns", 64, server{slots: 32, latency: second, spread: 0.5}).during = dies
	return all
}

// best is what the best fixed concurrency comes to: at each endpoint alone, summed over them.
func (s scenario) best() (good float64) {
	for i := range s.servers {
		most, at := 0, 0
		for _, c := range []int{1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 63, 64, 96, 128, 256, 512} {
			if c > s.workers {
				break
			}
			one := s.servers[i]
			one.begin(1)
			all := []*server{&one}
			var during func()
			if s.during != nil && i == 0 {
				during = func() { s.during(all) }
			}
			if n := play(make(fixed, c), all, s.workers, s.length(), during); n.good > most {
				most, at = n.good, c
			} else if c >= 2*at { // no server here gets better once twice as many gain nothing
				break
			}
		}
		good += float64(most)
	}
	return good
}

func (s scenario) length() time.Duration {
	if s.lasts == 0 {
		return 2 * time.Minute
	}
	return s.lasts
}

// TestFollows plays endpoints with limits of every kind. From the 15th second on, nine tenths are wanted of what the best
// fixed concurrency gets, and at most 2 % of the requests refused beyond those that are refused whatever is sent; the log
// has the figures. Goroutines run in another order each time, and a verdict about chance may be wrong in one of them, so that what is
// held is less.
func TestFollows(t *testing.T) {
	const seeds = 5
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			var best, share, refused float64
			synctest.Test(t, func(*testing.T) { best = s.best() })
			for seed := range uint64(seeds) {
				var got tally
				synctest.Test(t, func(*testing.T) { got = s.play(seed) })
				mine, lost := float64(got.good)/best, float64(got.refused)/float64(max(got.all, 1))-s.whim
				t.Logf("seed %d: %.1f %% of the best, %.2f %% refused beyond random", seed, 100*mine, 100*lost)
				share, refused = share+mine/seeds, refused+lost/seeds
				if mine < 0.6 { // one of some 2,000 plays came to 0.627
					t.Errorf("seed %d: %d requests went well, want at least 0.6 of the %.0f with the best fixed concurrency", seed, got.good, best)
				}
			}
			if share < 0.86 || refused >= 0.04 {
				t.Errorf("%.1f %% of the best and %.2f %% refused, want at least 86 and fewer than 4", 100*share, 100*refused)
			}
		})
	}
}

// play has the scenario's workers go through a Set.
func (s scenario) play(seed uint64) tally {
	servers, names := make([]*server, len(s.servers)), []string(nil)
	for i := range s.servers {
		one := s.servers[i]
		one.begin(seed + 10)
		servers[i], names = &one, append(names, fmt.Sprint("endpoint ", i))
	}
	set := gate.NewSet(gate.Config{Ceiling: s.workers, Now: time.Now}, names...)
	return play(ours{set}, servers, s.workers, s.length(), func() {
		if s.during != nil {
			s.during(servers)
		}
	})
}
