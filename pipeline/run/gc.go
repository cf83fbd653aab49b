package run

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// manyWorkers is the number of workers from which on memory is saved at the cost of a little time.
	manyWorkers = 1000
	// TightGC is the percentage of garbage beside what is in memory.
	TightGC = 40
	// most is the highest percentage while processors are short, and usual is Go's default. Half of most means twice as many
	// collections, and each delays replies for a second when tens of thousands of episodes are in memory.
	most, usual = 400, 100
	// share limits live memory and garbage to 1/share of the free memory.
	share = 4
	// patience is how long processors count as short after requests were last held back, as a collection holds them back itself.
	patience = 30 * time.Second
)

// TuneGC saves memory while thousands of episodes wait for a model, and returns a function that undoes it. Live memory then
// hardly changes, and by default Go would allow as much garbage again, counting the stacks of waiting goroutines, too.
//
// held is how long requests have waited for this process's processors. While that grows, processor time matters more than
// memory, of which free says how much there is: episodes that have not begun need none, and a collection takes most of two
// processors until it is over.
func TuneGC(workers int, held func() time.Duration, free func() uint64) (undo func()) {
	const few = 25 // percent: with little live memory, collecting is cheap
	switch {
	case workers < manyWorkers || os.Getenv("GOGC") != "": // the user has chosen
		return func() {}
	case workers < 5*manyWorkers:
		return SetGC(few)
	}
	return spend(TightGC, held, free)
}

// spend sets the garbage collector to percent, and to more while requests are held back.
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

// affordable is the percentage with which live memory and garbage stay within their share of the free memory. It changes in
// steps, as each change stops all goroutines for a moment.
func affordable(free uint64) int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	room := int(min(100*(free/share)/max(live[0].Value.Uint64(), 1), 100+most)) - 100
	return max(room/100*100, usual)
}

// startGC is the percentage for the start of a run, which reads the whole dataset while little memory is live.
const startGC = 200

// SetGC sets the percentage, and returns a function that undoes it: an export makes garbage of each episode beside the pages that
// it holds. It leaves a GOGC of the user alone.
func SetGC(percent int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(was) }
}
