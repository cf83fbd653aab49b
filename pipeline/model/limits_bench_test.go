package model_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"trajgen/pipeline/model"
)

// limited is a server that has a limit of some kind.
type limited struct {
	bucket *rate.Limiter     // of requests; those beyond are refused with a 429
	places int32             // requests worked on at once; those beyond are refused with a 503
	whim   float64           // share of requests that are refused whatever is sent
	slower func(n int32) int // times the latency, with so many worked on

	busy            atomic.Int32
	counting        atomic.Bool
	served, refused atomic.Int64
}

func (s *limited) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	const latency = 200 * time.Millisecond
	n := s.busy.Add(1)
	defer s.busy.Add(-1)
	status := 0
	switch {
	case rand.Float64() < s.whim, s.bucket != nil && !s.bucket.Allow():
		status = http.StatusTooManyRequests
	case s.places > 0 && n > s.places:
		status = http.StatusServiceUnavailable
	}
	if status != 0 {
		if s.counting.Load() {
			s.refused.Add(1)
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		return
	}
	takes := time.Duration((0.5 + rand.Float64()) * float64(latency))
	if s.slower != nil {
		takes *= time.Duration(s.slower(n))
	}
	time.Sleep(takes)
	io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	if s.counting.Load() {
		s.served.Add(1)
	}
}

// play has 64 workers ask the server over a socket, and counts what it serves and refuses from the 15th second on for as long
// again. fixed is how many requests it is sent at once; 0 leaves that to the client.
func (s *limited) play(b *testing.B, fixed int) {
	const workers, settled = 64, 15 * time.Second
	ctx, stop := context.WithTimeout(b.Context(), 2*settled)
	defer stop()
	client := open(b, model.Config{Settings: model.Settings{BaseURL: endpoint(b, s.ServeHTTP)}, Patience: model.Patience{Retries: 1000, MinInFlight: fixed, MaxInFlight: max(fixed, 0)}, RetryBase: 2 * time.Second, RetryMax: time.Minute, Concurrency: workers})
	time.AfterFunc(settled, func() { s.counting.Store(true) })
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for turn := 0; turn < 4 && ctx.Err() == nil; turn++ {
					client.Complete(ctx, model.Request{Messages: hello, Asker: model.Asker{Episode: fmt.Sprint(w, "/", n)}, State: model.State{Turn: turn}})
				}
			}
		})
	}
	all.Wait()
	s.counting.Store(false)
}

// BenchmarkLimits tells what share a client gets of what the best fixed number of requests at once gets, over real sockets, and
// which share of its requests is refused. Half a minute for each limit.
func BenchmarkLimits(b *testing.B) {
	for name, make := range map[string]func() *limited{
		"100 a second":     func() *limited { return &limited{bucket: rate.NewLimiter(100, 50)} },
		"32 at once":       func() *limited { return &limited{places: 32} },
		"8 at once":        func() *limited { return &limited{places: 8} },
		"2 % at random":    func() *limited { return &limited{whim: 0.02} },
		"10 % at random":   func() *limited { return &limited{whim: 0.1} },
		"a cliff at 48":    func() *limited { return &limited{slower: func(n int32) int { return 1 + 9*int(n/49) }} },
		"slower beyond 16": func() *limited { return &limited{slower: func(n int32) int { return 1 + int(n*n/256) }} },
	} {
		b.Run(name, func(b *testing.B) {
			servers := map[int]*limited{}
			var all sync.WaitGroup
			for _, fixed := range []int{0, 8, 16, 20, 32, 48, 64} {
				s := make()
				servers[fixed] = s
				all.Go(func() { s.play(b, fixed) })
			}
			all.Wait()
			best := int64(0)
			for fixed, s := range servers {
				if fixed > 0 {
					best = max(best, s.served.Load())
				}
			}
			ours := servers[0]
			served, refused := float64(ours.served.Load()), float64(ours.refused.Load())
			b.ReportMetric(100*served/float64(best), "%-of-best")
			b.ReportMetric(100*refused/(served+refused), "%-refused")
		})
	}
}
