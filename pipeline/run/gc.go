package run

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// manyWorkers is from how many episodes in play on memory is spared at the cost of a little time.
	manyWorkers = 1000
	// TightGC is the percentage of garbage beside what is in memory.
	TightGC = 40
	// lavish is the most that it may become where time is dearer, and usual what it is elsewhere. Half of lavish costs twice
	// the collections, and each of them keeps replies waiting for a second where tens of thousands of episodes are in memory.
	lavish, usual = 400, 100
	// share is the part of the free memory that all of it may take then: 1/share.
	share = 4
	// patience is how long time goes on being dear after requests were last held back. A collection holds them up itself.
	patience = 30 * time.Second
)

// TuneGC spares memory where thousands of episodes wait for a model, and undoes that. What is in memory then hardly
// changes, and Go would let as much again become garbage: of the stacks of those that wait, too.
//
// held is how long requests have waited for the own processors. While they do, the time is dearer than the memory, of which
// free says how much there is: episodes that have not begun take none, and a collection takes most of two processors
// until it is over.
func TuneGC(workers int, held func() time.Duration, free func() uint64) (undo func()) {
	const few = 25 // what collecting costs grows with what is in memory
	switch {
	case workers < manyWorkers || os.Getenv("GOGC") != "": // a user who has set it knows better
		return func() {}
	case workers < 5*manyWorkers:
		return SetGC(few)
	}
	return spend(TightGC, held, free)
}

// spend has the garbage collector run as often as percent says, and less while requests are held back.
func spend(percent int, held func() time.Duration, free func() uint64) (undo func()) {
	const glance = time.Second
	was, now := debug.SetGCPercent(percent), percent
	end := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(glance)
		defer ticker.Stop()
		before, last := held(), time.Now().Add(-patience)
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			since := held()
			if since-before > glance/4 {
				last = time.Now()
			}
			before = since
			want := percent
			if time.Since(last) < patience {
				want = affordable(free())
			}
			if want != now {
				debug.SetGCPercent(want)
				now = want
			}
		}
	})
	return func() {
		close(end)
		wait.Wait()
		debug.SetGCPercent(was)
	}
}

// affordable is the percentage of garbage with which all that is in memory stays within its share of what is free. It
// changes in steps: each change stops all goroutines for a moment.
func affordable(free uint64) int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	room := int(min(100*(free/share)/max(live[0].Value.Uint64(), 1), 100+lavish)) - 100
	return max(room/100*100, usual)
}

// startGC is the percentage for the start of a run, which reads the whole dataset while hardly anything is in memory yet.
const startGC = 200

// SetGC has the garbage collector run more often, or less, and undoes that: an export makes garbage of each episode,
// beside pages that it holds. A user who has set GOGC knows better.
func SetGC(percent int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(was) }
}
