package gate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/model/gate"
)

// processor works on a queue, piece by piece, in the time of a synctest bubble.
type processor struct {
	piece time.Duration
	queue chan chan struct{}
	mu    sync.Mutex
	waits []time.Duration
}

func newProcessor(piece time.Duration) *processor {
	return &processor{piece: piece, queue: make(chan chan struct{}, 1<<20)}
}

func (p *processor) machine() gate.Machine {
	return gate.Machine{Processors: 1, Backlog: func() int { return len(p.queue) }, Now: time.Now}
}

func (p *processor) run() {
	for done := range p.queue {
		time.Sleep(p.piece)
		close(done)
	}
}

// work waits for the processor, and for a piece of work.
func (p *processor) work() {
	began, done := time.Now(), make(chan struct{})
	p.queue <- done
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = append(p.waits, time.Since(began)-p.piece)
}

// episode makes requests that take so long elsewhere. Each is two pieces of work, as it is sent and as it comes back.
func (p *processor) episode(t *testing.T, g *gate.Gate, turns int, delay time.Duration) {
	for turn := range turns {
		pass, err := g.Acquire(t.Context(), gate.Ticket{Turn: turn, Since: time.Now()})
		if err != nil {
			t.Error(err)
			return
		}
		p.work()
		time.Sleep(delay)
		p.work()
		pass.Done(gate.Result{Kind: gate.OK, Latency: delay})
	}
}

// late is the wait that one of a hundred pieces exceeded.
func (p *processor) late() time.Duration {
	slices.Sort(p.waits)
	return p.waits[len(p.waits)*99/100]
}

// TestProcessors has far more requests than the own processor has time for, at a server that takes 2 s for each.
func TestProcessors(t *testing.T) {
	const workers, each, piece = 8000, 2, 300 * time.Microsecond
	play := func(t *testing.T, held bool) (elapsed, late time.Duration, load gate.Load) {
		synctest.Test(t, func(t *testing.T) {
			own := newProcessor(piece)
			go own.run()
			defer close(own.queue)
			processors := gate.NewProcessors(own.machine())
			cfg := gate.Config{Floor: workers, Now: time.Now}
			if held {
				cfg.Processors = processors
			}
			g, began := gate.New(cfg), time.Now()
			var all sync.WaitGroup
			for range workers {
				if held {
					<-processors.Room()
				}
				all.Go(func() { own.episode(t, g, each, 2*time.Second) })
			}
			all.Wait()
			elapsed, late, load = time.Since(began), own.late(), processors.Load()
		})
		return elapsed, late, load
	}
	ideal := workers * each * 2 * piece
	without, long, _ := play(t, false)
	with, short, load := play(t, true)
	t.Logf("ideally %v: %v and 99 of 100 within %v without, %v and %v with: %+v", ideal, without, long, with, short, load)
	if long < time.Second {
		t.Errorf("99 of 100 pieces wait up to %v when nothing is held back: too little for this test", long)
	}
	if short > long/4 {
		t.Errorf("99 of 100 pieces wait up to %v, want less than a quarter of the %v without", short, long)
	}
	if most := (ideal + each*2*time.Second) * 105 / 100; with > most {
		t.Errorf("took %v, want at most %v: the work, and the replies to an episode", with, most)
	}
	if load.InFlight != 0 || load.Held == 0 {
		t.Errorf("load = %+v, want nothing in flight, and some time held back", load)
	}
}

// TestFasterThanGuessed has a processor that has time for six times as many requests as is guessed at first.
func TestFasterThanGuessed(t *testing.T) {
	const workers, turns, piece = 10_000, 5, 50 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		own := newProcessor(piece)
		go own.run()
		defer close(own.queue)
		g := gate.New(gate.Config{Floor: workers, Now: time.Now, Processors: gate.NewProcessors(own.machine())})
		began := time.Now()
		var all sync.WaitGroup
		for range workers {
			all.Go(func() { own.episode(t, g, turns, 500*time.Millisecond) })
		}
		all.Wait()
		elapsed, ideal := time.Since(began), workers*turns*2*piece
		t.Logf("took %v, ideally %v, late %v", elapsed, ideal, own.late())
		if most := ideal * 2; elapsed > most {
			t.Errorf("took %v, want at most %v", elapsed, most)
		}
	})
}

// TestFewAreNeverHeld has a machine that other processes keep busy.
func TestFewAreNeverHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gate.NewProcessors(gate.Machine{Processors: 2, Backlog: func() int { return 1 << 20 }, Now: time.Now})
		g := gate.New(gate.Config{Floor: 64, Now: time.Now, Processors: p})
		began := time.Now()
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for turn := range 100 {
					<-p.Room()
					pass, err := g.Acquire(t.Context(), gate.Ticket{Turn: turn})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second)
					pass.Done(gate.Result{Kind: gate.OK, Latency: time.Second})
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 105*time.Second {
			t.Errorf("100 requests of 1 s one after the other took %v", took)
		}
	})
}

// TestGatesTakeTurns has two endpoints whose requests all wait for processors. That wait does not change what a gate knows
// about its endpoint, and the longest wait goes first.
func TestGatesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gate.NewProcessors(gate.Machine{Processors: 1, Backlog: func() int { return 1 << 20 }, Now: time.Now})
		ctx, stop := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		var gates []*gate.Gate
		var sent [2]atomic.Int32
		var last [2]atomic.Int64
		var held atomic.Bool // all have come
		for i := range 2 {
			g := gate.New(gate.Config{Floor: 1000, Ceiling: 2000, Now: time.Now, Processors: p})
			gates = append(gates, g)
			for n := range 1000 {
				all.Go(func() {
					pass, err := g.Acquire(ctx, gate.Ticket{Since: time.Unix(int64(n), 0)})
					if err != nil {
						return
					}
					if sent[i].Add(1); held.Load() && last[i].Swap(int64(n)) > int64(n) {
						t.Errorf("request %d goes after a younger one", n)
					}
					<-ctx.Done()
					pass.Done(gate.Result{})
				})
			}
		}
		synctest.Wait()
		held.Store(true)
		began := p.Load().InFlight
		time.Sleep(5 * time.Second)
		a, b := sent[0].Load(), sent[1].Load()
		if more := int(a+b) - began; more < 200 || more > 400 {
			t.Errorf("%d requests in 5 s, want the 50 of each second that there always are", more)
		}
		if a < 80 || b < 80 {
			t.Errorf("the gates sent %d and %d requests, want as many of one as of the other", a, b)
		}
		for _, g := range gates {
			if s := g.State(); s.Limit != 1000 || s.Waiting != 1000-s.InFlight || !s.Held {
				t.Errorf("state = %+v, want the limit of 1000 that it began with, and the others waiting for the processors", s)
			}
		}
		stop(errors.New("enough"))
		all.Wait()
		if load := p.Load(); load.InFlight != 0 {
			t.Errorf("%d requests in flight after the end", load.InFlight)
		}
	})
}

// TestEvenly has episodes in progress and new ones wait for the own processors: the longest wait goes first.
func TestEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gate.NewProcessors(gate.Machine{Processors: 1, Backlog: func() int { return 1 << 20 }, Now: time.Now})
		g := gate.New(gate.Config{Floor: 1000, Now: time.Now, Processors: p})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var got order
		began := time.Now()
		acquire := func(name string, turn, since int) {
			all.Go(func() {
				if pass, err := g.Acquire(ctx, gate.Ticket{Turn: turn, Since: began.Add(time.Duration(since))}); err == nil {
					got.add(name)
					<-ctx.Done()
					pass.Done(gate.Result{})
				}
			})
		}
		for range 200 { // more than go at once
			acquire("before", 1, 0)
		}
		synctest.Wait()
		acquire("running, late", 1, 2)
		acquire("new, early", 0, 1)
		acquire("new, late", 0, 3)
		time.Sleep(time.Minute)
		want := []string{"new, early", "running, late", "new, late"}
		if names := got.all(); len(names) != 203 || !slices.Equal(names[200:], want) {
			t.Errorf("order = %q, want %q at the end", names[max(0, len(names)-3):], want)
		}
		stop()
		all.Wait()
	})
}

// TestStopped has the whole process stopped for an hour, as by a laptop's lid.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64
		p := gate.NewProcessors(gate.Machine{Processors: 1, Backlog: func() int { return 0 }, Now: func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }})
		g := gate.New(gate.Config{Floor: 1000, Now: time.Now, Processors: p})
		before := p.Load().Rate
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				pass, err := g.Acquire(t.Context(), gate.Ticket{})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(10 * time.Second)
				pass.Done(gate.Result{Kind: gate.OK})
			})
		}
		time.Sleep(100 * time.Millisecond)
		stopped.Store(int64(time.Hour))
		defer all.Wait()
		time.Sleep(10 * time.Millisecond)
		if rate := p.Load().Rate; rate < before*9/10 {
			t.Errorf("%v requests each second after an hour's stop, %v before", rate, before)
		}
	})
}

// crowd asks for 500 permissions, each of which ends with ctx. It returns when no more are given out without time passing.
func crowd(ctx context.Context, g *gate.Gate) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for range 500 {
		all.Go(func() {
			if pass, err := g.Acquire(ctx, gate.Ticket{}); err == nil {
				<-ctx.Done()
				pass.Done(gate.Result{})
			}
		})
	}
	synctest.Wait()
	return all
}

// TestRoom lets episodes begin evenly, and not while requests of others wait.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backlog atomic.Int64
		p := gate.NewProcessors(gate.Machine{Processors: 1, Backlog: func() int { return int(backlog.Load()) }, Now: time.Now})
		begin := func(n int) time.Duration {
			began := time.Now()
			for range n {
				<-p.Room()
			}
			return time.Since(began)
		}
		if took := begin(8); took != 0 {
			t.Errorf("a handful of episodes began after %v, want at once", took)
		}
		if took := begin(5000); took < 300*time.Millisecond || took > 3*time.Second {
			t.Errorf("5,000 episodes began within %v, want a second or two", took)
		}
		g := gate.New(gate.Config{Floor: 5000, Now: time.Now, Processors: p})
		ctx, stop := context.WithCancel(t.Context())
		backlog.Store(1 << 20)
		all := crowd(ctx, g)
		room := p.Room()
		time.Sleep(time.Second)
		select {
		case <-room:
			t.Error("an episode began while requests waited")
		default:
		}
		stop()
		all.Wait()
		<-room
	})
}

// TestPace lets episodes begin while requests wait, and no faster than those go.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := gate.NewProcessors(gate.Machine{Processors: 1, Backlog: func() int { return 1 << 20 }, Now: time.Now})
		g := gate.New(gate.Config{Floor: 5000, Now: time.Now, Processors: p})
		ctx, stop := context.WithCancel(t.Context())
		all := crowd(ctx, g)
		began := time.Now()
		for range 250 {
			<-p.Pace()
		}
		if took := time.Since(began); took < 2*time.Second || took > 6*time.Second {
			t.Errorf("250 episodes began within %v, want the 5 s that as many requests take", took)
		}
		stop()
		all.Wait()
	})
}
