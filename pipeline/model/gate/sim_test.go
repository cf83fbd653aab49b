package gate_test

import (
	"context"
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
	rate, burst float64       // of a bucket of permissions; rate 0 has none
	slots       int           // requests worked on at once; 0 is without bound
	queue       int           // requests that wait for a slot; those beyond are refused
	latency     time.Duration // of one request, once it is worked on
	spread      float64       // of the latency, by chance: from 1-spread to 1+spread times
	refusal     time.Duration // until a refusal is told
	wish        time.Duration // Retry-After
	headers     bool          // tells what is left in the bucket
	batch       bool          // slower with every request at once, and worth it

	mu      sync.Mutex
	rng     *rand.Rand
	left    float64
	at      time.Time
	busy    int
	waiting []chan struct{}
	down    bool    // no connection
	whim    float64 // share of requests that are refused whatever we do
	served  int
}

func (s *server) begin() {
	if s.refusal == 0 {
		s.refusal = 10 * time.Millisecond
	}
	s.rng, s.left, s.at = rand.New(rand.NewPCG(1, 2)), s.burst, time.Now()
}

// set changes the server under way.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refill()
	change()
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
	s.mu.Lock()
	var told gate.Budget
	if s.down {
		s.mu.Unlock()
		time.Sleep(s.refusal)
		return gate.Result{Kind: gate.Failed}
	}
	if s.rng.Float64() < s.whim {
		s.mu.Unlock()
		time.Sleep(s.refusal)
		return gate.Result{Kind: gate.Limited, RetryAfter: s.wish}
	}
	if s.rate > 0 {
		s.refill()
		refused := s.left < 1
		if !refused {
			s.left--
		}
		if s.headers {
			told = gate.Budget{Limit: s.burst, Remaining: math.Floor(s.left), Reset: time.Duration((s.burst - s.left) / s.rate * float64(time.Second))}
		}
		if refused {
			s.mu.Unlock()
			time.Sleep(s.refusal)
			return gate.Result{Kind: gate.Limited, RetryAfter: s.wish, Requests: told}
		}
	}
	if s.slots > 0 && s.busy >= s.slots {
		if len(s.waiting) >= s.queue {
			s.mu.Unlock()
			time.Sleep(s.refusal)
			return gate.Result{Kind: gate.Busy, RetryAfter: s.wish}
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
	if s.batch {
		takes = time.Duration(float64(takes) * (1 + float64(s.busy)/64))
	}
	s.mu.Unlock()
	time.Sleep(takes)
	s.mu.Lock()
	s.served++
	s.busy--
	if len(s.waiting) > 0 && s.busy < s.slots {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.busy++
	}
	s.mu.Unlock()
	return gate.Result{Kind: gate.OK, Latency: time.Since(began), Work: 100, Requests: told}
}

// tally is what a simulation came to.
type tally struct {
	good, refused, lateRefused, lateAll int
	elapsed, most                       time.Duration // in all, and until 95 of 100 had gone well
	byKind                              map[gate.Kind]int
}

// simulate has workers play so many requests each, again when refused, and waits for all of them.
func simulate(t *testing.T, s *server, g *gate.Gate, workers, each int, during func()) tally {
	t.Helper()
	began := time.Now()
	result := tally{byKind: map[gate.Kind]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for turn := range each {
				since := time.Now()
				for {
					pass, err := g.Acquire(context.Background(), gate.Ticket{Turn: turn, Since: since})
					if err != nil {
						t.Errorf("worker %d: %v", w, err)
						return
					}
					late := time.Since(began) > 30*time.Second
					r := s.ask()
					pass.Done(r)
					mu.Lock()
					result.byKind[r.Kind]++
					if late {
						result.lateAll++
					}
					if r.Kind == gate.OK {
						if result.good++; result.good == workers*each*95/100 {
							result.most = time.Since(began)
						}
						mu.Unlock()
						break
					}
					result.refused++
					if late && r.Kind != gate.Failed {
						result.lateRefused++
					}
					mu.Unlock()
					if r.Kind == gate.Failed {
						time.Sleep(10 * time.Second)
					}
				}
			}
		})
	}
	if during != nil {
		all.Go(during)
	}
	all.Wait()
	result.elapsed = time.Since(began)
	return result
}

// TestFollows plays servers with limits of every kind. ideal is the time that the requests take at full speed.
func TestFollows(t *testing.T) {
	second := time.Second
	tests := []struct {
		name          string
		server        *server
		workers, each int
		during        func(*server) // changes the server under way
		ideal         time.Duration
		cfg           gate.Config
	}{
		{name: "20 a second, fast", server: &server{rate: 20, burst: 20, latency: 50 * time.Millisecond}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second, told to wait 1 s", server: &server{rate: 20, burst: 20, latency: 50 * time.Millisecond, wish: second}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second, slow", server: &server{rate: 20, burst: 20, latency: 2 * second, spread: 0.8, refusal: 20 * time.Millisecond}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second, slow, told to wait 1 s", server: &server{rate: 20, burst: 20, latency: 2 * second, spread: 0.8, wish: second}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second without bursts", server: &server{rate: 20, burst: 2, latency: 50 * time.Millisecond}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second with headers", server: &server{rate: 20, burst: 20, latency: 50 * time.Millisecond, headers: true, wish: second}, workers: 640, each: 4, ideal: 128 * second},
		{name: "20 a second with headers, slow", server: &server{rate: 20, burst: 20, latency: 2 * second, spread: 0.8, headers: true, wish: second}, workers: 640, each: 4, ideal: 128 * second},
		{name: "a minute's budget of 1200 with headers", server: &server{rate: 20, burst: 1200, latency: 2 * second, headers: true, wish: second}, workers: 1280, each: 4, ideal: 196 * second},
		{name: "100 a second", server: &server{rate: 100, burst: 50, latency: 500 * time.Millisecond, spread: 0.5}, workers: 2000, each: 4, ideal: 80 * second},
		{name: "8 at once", server: &server{slots: 8, latency: second, spread: 0.5}, workers: 192, each: 4, ideal: 96 * second},
		{name: "8 at once, and 8 wait", server: &server{slots: 8, queue: 8, latency: second, spread: 0.5}, workers: 192, each: 4, ideal: 96 * second},
		{name: "64 at once, all wait", server: &server{slots: 64, queue: 1000, latency: second, spread: 0.5}, workers: 1536, each: 4, ideal: 96 * second},
		{name: "halves in mid-run", server: &server{slots: 32, queue: 4, latency: second, spread: 0.5}, workers: 640, each: 4, ideal: 110 * second,
			during: func(s *server) { time.Sleep(50 * second); s.set(func() { s.slots = 16 }) }},
		{name: "a rate that halves in mid-run", server: &server{rate: 20, burst: 20, latency: 200 * time.Millisecond}, workers: 640, each: 4, ideal: 206 * second,
			during: func(s *server) { time.Sleep(50 * second); s.set(func() { s.rate = 10 }) }},
		{name: "doubles in mid-run", server: &server{slots: 16, queue: 4, latency: second, spread: 0.5}, workers: 1280, each: 4, ideal: 185 * second,
			during: func(s *server) { time.Sleep(50 * second); s.set(func() { s.slots = 32 }) }},
		{name: "outage of a minute", server: &server{slots: 32, queue: 4, latency: second, spread: 0.5, refusal: time.Millisecond}, workers: 1280, each: 4, ideal: 222 * second,
			during: func(s *server) {
				time.Sleep(50 * second)
				s.set(func() { s.down = true })
				time.Sleep(60 * second)
				s.set(func() { s.down = false })
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tt.server
				s.begin()
				cfg := tt.cfg
				cfg.Now, cfg.Ceiling = time.Now, tt.workers
				g := gate.New(cfg)
				got := simulate(t, s, g, tt.workers, tt.each, func() {
					if tt.during != nil {
						tt.during(s)
					}
				})
				share := float64(got.lateRefused) / float64(max(got.lateAll, 1))
				t.Logf("%v of ideally %v (%.1f %%, all but the last %.1f %%), %d refused, after 30 s %d of %d (%.2f %%); %+v", got.elapsed.Round(time.Millisecond), tt.ideal,
					100*tt.ideal.Seconds()/got.elapsed.Seconds(), 95*tt.ideal.Seconds()/got.most.Seconds(), got.refused, got.lateRefused, got.lateAll, 100*share, g.State())
				if got.good != tt.workers*tt.each {
					t.Errorf("%d requests went well, want %d", got.good, tt.workers*tt.each)
				}
				if got.most.Seconds() > tt.ideal.Seconds() {
					t.Errorf("took %v, want at most %v: 95 %% of the ideal throughput", got.elapsed, time.Duration(float64(tt.ideal)/0.95))
				}
				if share >= 0.02 {
					t.Errorf("%d of %d requests refused after 30 s, want fewer than 2 %%", got.lateRefused, got.lateAll)
				}
			})
		})
	}
}

// TestWhim has a server refuse one request in ten whatever we do: slowing down would not help.
func TestWhim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{slots: 1000, latency: time.Second, spread: 0.5, whim: 0.1}
		s.begin()
		g := gate.New(gate.Config{Ceiling: 64, Now: time.Now})
		got := simulate(t, s, g, 1600, 8, func() {})
		t.Logf("%v: %+v", got.elapsed, g.State())
		if ideal := 1600 * 8 / 64 * time.Second; got.elapsed > 2*ideal {
			t.Errorf("took %v, want at most twice the %v that it takes without refusals", got.elapsed, ideal)
		}
	})
}
