package gate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"trajgen/pipeline/model/gate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acquire waits for a pass in the background; order receives the names of those that got one.
type order struct {
	mu    sync.Mutex
	names []string
}

func (o *order) add(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
}

func (o *order) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.names)
}

// TestOrder has all requests wait for one place.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Ceiling: 1, Now: time.Now})
		first, err := g.Acquire(t.Context(), gate.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		var got order
		var all sync.WaitGroup
		for _, w := range []struct {
			name   string
			turn   int
			waited time.Duration
		}{
			{"new, late", 0, 0}, {"running, late", 1, 0}, {"new, early", 0, 2 * time.Second},
			{"running, early", 9, time.Second}, {"running, earliest", 2, 3 * time.Second},
		} {
			all.Go(func() {
				pass, err := g.Acquire(t.Context(), gate.Ticket{Turn: w.turn, Since: now.Add(-w.waited)})
				if err != nil {
					t.Error(err)
					return
				}
				got.add(w.name)
				pass.Done(gate.Result{Kind: gate.OK})
			})
		}
		synctest.Wait()
		first.Done(gate.Result{Kind: gate.OK})
		all.Wait()
		want := []string{"running, earliest", "running, early", "running, late", "new, early", "new, late"}
		if !slices.Equal(got.all(), want) {
			t.Errorf("order = %q, want %q", got.all(), want)
		}
	})
}

// TestFreshDoNotStarve has so many episodes in progress that one is always ahead of the new one.
func TestFreshDoNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(gate.Config{Ceiling: 1, Now: time.Now})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for turn := 1; ; turn++ {
					pass, err := g.Acquire(ctx, gate.Ticket{Turn: turn, Since: time.Now()})
					if err != nil {
						return
					}
					time.Sleep(time.Second)
					pass.Done(gate.Result{Kind: gate.OK, Latency: time.Second})
				}
			})
		}
		began := time.Now()
		time.Sleep(time.Millisecond)
		pass, err := g.Acquire(t.Context(), gate.Ticket{Since: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 30*time.Second || waited > 2*time.Minute {
			t.Errorf("the new one waited %v, want more than half a minute and less than two", waited)
		}
		pass.Done(gate.Result{Kind: gate.OK})
		stop()
		all.Wait()
	})
}

// TestCancel has waiters give up at every moment: no place may be lost, and none given out twice.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		g := gate.New(gate.Config{Ceiling: places, Now: time.Now})
		rng := rand.New(rand.NewPCG(1, 2))
		reason := errors.New("enough")
		var all sync.WaitGroup
		var mu sync.Mutex
		inside, most, cancelled := 0, 0, 0
		for range 500 {
			patience, work := time.Duration(rng.IntN(200))*time.Millisecond, time.Duration(rng.IntN(3))*time.Millisecond
			all.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, reason)
				defer cancel()
				pass, err := g.Acquire(ctx, gate.Ticket{Since: time.Now()})
				mu.Lock()
				if err != nil {
					if cancelled++; !errors.Is(err, reason) {
						t.Errorf("error = %v, want %v", err, reason)
					}
					mu.Unlock()
					return
				}
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(work)
				mu.Lock()
				inside--
				mu.Unlock()
				pass.Done(gate.Result{})
			})
		}
		all.Wait()
		if most > places || cancelled == 0 {
			t.Errorf("%d were inside at once, want at most %d; %d gave up, want some", most, places, cancelled)
		}
		if s := g.State(); s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("in the end %+v, want no request", s)
		}
		for range places { // every place is still there
			if _, err := g.Acquire(t.Context(), gate.Ticket{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSpeed changes what requests take: a server that collapses is relieved, and one that writes longer replies, or
// is slower for each and faster for all, is not.
func TestSpeed(t *testing.T) {
	tests := []struct {
		name  string
		take  func(inFlight int, since time.Duration) (latency time.Duration, work float64)
		most  float64 // of the limit in the end
		least float64
	}{
		{"steady", func(int, time.Duration) (time.Duration, float64) { return time.Second, 100 }, 512, 500},
		{"longer replies", func(_ int, since time.Duration) (time.Duration, float64) {
			if since > 20*time.Second {
				return 20 * time.Second, 2400
			}
			return time.Second, 100
		}, 512, 500},
		{"a batch is worth it", func(n int, _ time.Duration) (time.Duration, float64) {
			return time.Duration(float64(time.Second) * (1 + float64(n)/128)), 100
		}, 512, 400},
		{"a queue of no use", func(n int, _ time.Duration) (time.Duration, float64) {
			return time.Second * time.Duration(max(n, 32)) / 32, 100
		}, 256, 32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gate.New(gate.Config{Ceiling: 512, Now: time.Now})
				began := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				var all sync.WaitGroup
				for range 512 {
					all.Go(func() {
						for {
							pass, err := g.Acquire(ctx, gate.Ticket{Turn: 1, Since: time.Now()})
							if err != nil {
								return
							}
							latency, work := tt.take(g.State().InFlight, time.Since(began))
							time.Sleep(latency)
							pass.Done(gate.Result{Kind: gate.OK, Latency: latency, Work: work})
						}
					})
				}
				time.Sleep(2*time.Minute - time.Second)
				if limit := g.State().Limit; limit > tt.most || limit < tt.least {
					t.Errorf("limit = %.1f, want %v to %v", limit, tt.least, tt.most)
				}
				all.Wait()
			})
		})
	}
}

// TestManyWaiters holds 50,000 back and lets half of them give up.
func TestManyWaiters(t *testing.T) {
	const waiters = 50_000
	g := gate.New(gate.Config{Ceiling: 1, Now: time.Now})
	pass, err := g.Acquire(t.Context(), gate.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	begin := time.Now()
	for i := range waiters {
		all.Go(func() {
			mine := t.Context()
			if i%2 == 0 {
				mine = ctx
			}
			pass, err := g.Acquire(mine, gate.Ticket{Turn: i % 3, Since: begin.Add(time.Duration(i%1000) * time.Millisecond)})
			if err == nil {
				pass.Done(gate.Result{Kind: gate.OK})
			}
		})
	}
	stop()
	pass.Done(gate.Result{Kind: gate.OK})
	all.Wait()
	if s := g.State(); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("in the end %+v, want no request", s)
	}
}

// TestSet plays three endpoints: an episode stays at one, leaves it when it breaks, and comes back.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := gate.NewSet(gate.Config{Ceiling: 8, Now: time.Now}, "a", "b", "c")
		ask := func(id string, last int, kind gate.Kind) int {
			pass, at, err := s.Acquire(ctx, gate.Ticket{Episode: id, Since: time.Now()}, last)
			if err != nil {
				t.Fatal(err)
			}
			pass.Done(gate.Result{Kind: kind, Latency: time.Second})
			return at
		}
		homes := map[int]int{}
		for i := range 300 {
			id := fmt.Sprint("episode", i)
			at := ask(id, -1, gate.OK)
			homes[at]++
			if again := ask(id, -1, gate.OK); again != at {
				t.Errorf("%s went to %d and then to %d", id, at, again)
			}
			if other := (at + 1) % 3; ask(id, other, gate.OK) != other {
				t.Errorf("%s did not stay at %d, where its last turn was", id, other)
			}
		}
		for at, n := range homes {
			if n < 70 || n > 130 {
				t.Errorf("endpoint %d has %d of 300 episodes, want about a third", at, n)
			}
		}

		const id = "episode7"
		home := ask(id, -1, gate.OK)
		for range 3 {
			ask(id, home, gate.Failed)
		}
		if at := ask(id, home, gate.OK); at == home {
			t.Errorf("%s stayed at %d, which is broken", id, home)
		}
		time.Sleep(1500 * time.Millisecond)
		if at := ask(id, home, gate.Failed); at != home {
			t.Errorf("%d was not tried again after a while", home)
		}
		if at := ask(id, home, gate.OK); at == home {
			t.Errorf("%s came back to %d, which is still broken", id, home)
		}
		time.Sleep(time.Minute)
		ask(id, home, gate.OK)
		if at := ask(id, home, gate.OK); at != home {
			t.Errorf("%s did not come back to %d, which works again", id, home)
		}

		// A crowded endpoint is left alone.
		for range 30 {
			go func() {
				if pass, err := s.Gate(home).Acquire(ctx, gate.Ticket{Since: time.Now()}); err == nil {
					time.Sleep(time.Second)
					pass.Done(gate.Result{Kind: gate.OK})
				}
			}()
		}
		synctest.Wait()
		if at := ask(id, home, gate.OK); at == home {
			t.Errorf("%s waits at %d, which is crowded", id, home)
		}
		time.Sleep(time.Minute)
	})
}

// TestSetMovesWaiters breaks an endpoint for which others wait: they go elsewhere.
func TestSetMovesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gate.NewSet(gate.Config{Ceiling: 3, Now: time.Now}, "a", "b")
		at0 := func() *gate.Pass {
			pass, err := s.Gate(0).Acquire(t.Context(), gate.Ticket{})
			if err != nil {
				t.Fatal(err)
			}
			return pass
		}
		for range 2 {
			at0().Done(gate.Result{Kind: gate.Failed})
		}
		last, hold, more := at0(), at0(), at0()
		moved := make(chan int, 1)
		go func() {
			pass, at, err := s.Acquire(t.Context(), gate.Ticket{Episode: "e"}, 0)
			if err != nil {
				t.Error(err)
				return
			}
			pass.Done(gate.Result{Kind: gate.OK})
			moved <- at
		}()
		synctest.Wait()
		last.Done(gate.Result{Kind: gate.Failed})
		if at := <-moved; at != 1 {
			t.Errorf("the waiter was sent to endpoint %d, want 1", at)
		}
		hold.Done(gate.Result{})
		more.Done(gate.Result{})
	})
}

// TestBudget spends the last of a budget: the rest of a minute is waited for, and that of a day is not.
func TestBudget(t *testing.T) {
	tests := []struct {
		reset, least, most time.Duration
	}{
		{time.Minute, 5 * time.Second, time.Minute}, {24 * time.Hour, 0, 0}, {0, 0, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			g := gate.New(gate.Config{Now: time.Now})
			pass, err := g.Acquire(t.Context(), gate.Ticket{})
			if err != nil {
				t.Fatal(err)
			}
			pass.Done(gate.Result{Kind: gate.OK, Requests: gate.Budget{Limit: 10, Reset: tt.reset}})
			began := time.Now()
			for range 2 { // one had been allowed before
				if pass, err = g.Acquire(t.Context(), gate.Ticket{}); err != nil {
					t.Fatal(err)
				}
			}
			if waited := time.Since(began); waited < tt.least || waited > tt.most {
				t.Errorf("with a reset in %v waited %v, want %v to %v", tt.reset, waited, tt.least, tt.most)
			}
			pass.Done(gate.Result{})
		})
	}
}
