package main

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// manyWorkers is from how many episodes in play on memory is spared at the cost of a little time.
const manyWorkers = 1000

// sparing is the percentage of garbage beside what is in memory.
const sparing = 40

// thrift spares memory where thousands of episodes wait for a model, and undoes that. What is in memory then hardly
// changes, and Go would let as much again become garbage: of the stacks of those that wait, too.
//
// held is how long requests have waited for the own processors. While they do, the time is dearer than the memory:
// episodes that have not begun take none, and a collection takes most of two processors until it is over.
func thrift(workers int, held func() time.Duration) (undo func()) {
	const few = 25 // what collecting costs grows with what is in memory
	switch {
	case workers < manyWorkers || os.Getenv("GOGC") != "":
		return func() {}
	case workers < 5*manyWorkers:
		return spend(few, held)
	}
	return spend(sparing, held)
}

// spend has the garbage collector run as often as percent says, and at its usual pace while requests are held back.
func spend(percent int, held func() time.Duration) (undo func()) {
	const usual, glance = 100, time.Second
	was, now := debug.SetGCPercent(percent), percent
	end := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticker := time.NewTicker(glance)
		defer ticker.Stop()
		for before := held(); ; {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			want, since := percent, held()
			if since-before > glance/4 {
				want = usual
			}
			if before = since; want != now {
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

// hasty is the percentage for the start of a run, which reads the whole dataset while hardly anything is in memory yet.
const hasty = 200

// spare has the garbage collector run more often, or less, and undoes that: an export makes garbage of each episode,
// beside pages that it holds. A user who has set GOGC knows better.
func spare(percent int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(was) }
}
