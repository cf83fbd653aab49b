package main

import (
	"os"
	"runtime/debug"
)

// manyWorkers is from how many episodes in play on memory is spared at the cost of a little time.
const manyWorkers = 1000

// sparing is the percentage of garbage beside what is in memory.
const sparing = 40

// thrift spares memory where thousands of episodes wait for a model, and undoes that. What is in memory then hardly
// changes, and Go would let as much again become garbage: of the stacks of those that wait, too.
func thrift(workers int) (undo func()) {
	const few = 25 // what collecting costs grows with what is in memory
	switch {
	case workers < manyWorkers:
		return func() {}
	case workers < 5*manyWorkers:
		return spare(few)
	}
	return spare(sparing)
}

// spare has the garbage collector run more often, and undoes that: an export makes garbage of each episode, beside pages
// that it holds. A user who has set GOGC knows better.
func spare(percent int) (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(was) }
}
