package run

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBacklog has more goroutines that can run than processors.
func TestBacklog(t *testing.T) {
	count := backlog()
	var busy sync.WaitGroup
	var ended atomic.Bool
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !ended.Load() {
			}
		})
	}
	for late := time.Now().Add(time.Minute); count() == 0; {
		if time.Now().After(late) {
			t.Fatal("nobody waits for a processor")
		}
	}
	ended.Store(true)
	busy.Wait()
	if n := testing.AllocsPerRun(100, func() { count() }); n > 0 {
		t.Errorf("a look at the backlog allocates %v times", n)
	}
}

// TestThriftWhileHeld has requests wait for the own processors for a while.
func TestThriftWhileHeld(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	was := percent()
	for _, tt := range []struct{ memory, busy uint64 }{{1 << 50, most}, {1 << 20, usual}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			held := func() time.Duration { return max(0, min(time.Since(began)-10*time.Second, 10*time.Second)) }
			undo := TuneGC(5*manyWorkers, held, func() uint64 { return tt.memory })
			for _, at := range []struct {
				after time.Duration
				want  uint64
			}{{0, TightGC}, {9 * time.Second, TightGC}, {15 * time.Second, tt.busy}, {45 * time.Second, tt.busy}, {55 * time.Second, TightGC}} {
				time.Sleep(at.after - time.Since(began))
				synctest.Wait()
				if got := percent(); got != at.want {
					t.Errorf("%d bytes free, after %v: %d %% of garbage, want %d", tt.memory, at.after, got, at.want)
				}
			}
			undo()
		})
	}
	if got := percent(); got != was {
		t.Errorf("%d %% afterwards, want the %d of before", got, was)
	}
}
