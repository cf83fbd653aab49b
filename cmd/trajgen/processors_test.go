package main

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
)

// TestBacklog has more goroutines that can run than processors.
func TestBacklog(t *testing.T) {
	count := backlog()
	var busy sync.WaitGroup
	end := make(chan struct{})
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
			}
		})
	}
	for late := time.Now().Add(time.Minute); count() == 0; {
		if time.Now().After(late) {
			t.Fatal("nobody waits for a processor")
		}
	}
	close(end)
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
	for _, tt := range []struct{ memory, busy uint64 }{{1 << 50, lavish}, {1 << 20, usual}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			held := func() time.Duration { return max(0, min(time.Since(began)-10*time.Second, 10*time.Second)) }
			undo := thrift(5*manyWorkers, held, func() uint64 { return tt.memory })
			for _, at := range []struct {
				after time.Duration
				want  uint64
			}{{0, sparing}, {9 * time.Second, sparing}, {15 * time.Second, tt.busy}, {45 * time.Second, tt.busy}, {55 * time.Second, sparing}} {
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

// TestProgressSaysWhatHolds has a run that waits for its own processors, and then no more.
func TestProgressSaysWhatHolds(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := newProgress(&out, 100, false, 80, func() time.Time { return now })
	var held time.Duration
	p.held = func() time.Duration { return held }
	for _, more := range []time.Duration{0, 9 * time.Second, time.Second} {
		now = now.Add(10 * time.Second)
		held += more
		p.observe(pipeline.Event{Kind: pipeline.EpisodeFinished, Episode: &episode.Episode{Outcome: episode.Success}})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("printed %q, want three lines", out.String())
	}
	for i, line := range lines {
		if got := strings.Contains(line, "processors"); got != (i == 1) {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
}
