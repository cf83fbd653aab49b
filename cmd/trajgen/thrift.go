package main

import (
	"os"
	"runtime/debug"
)

// manyWorkers is from how many episodes in play on memory is spared at the cost of a little time.
const manyWorkers = 1000

// thrift has the garbage collector run more often where thousands of episodes wait for a model, and undoes that. What is
// in memory then hardly changes, and Go would let as much again become garbage: of the stacks of those that wait, too.
// A user who has set GOGC knows better.
func thrift(workers int) (undo func()) {
	const percent = 40
	if workers < manyWorkers || os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(was) }
}
