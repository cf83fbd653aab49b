package guest

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	// spendable is about how many bytes may be allocated between two checks of the heap. Most guests never check.
	spendable = 1 << 20
	// leastHeap is the heap size, in bytes, below which nothing is collected, as in the Go runtime.
	leastHeap = 4 << 20
)

// Env is the environment of a guest that is a process of its own.
var Env = []string{"GOTRACEBACK=single", "GOGC=off"}

// garbage collects between two forks; Env turns the Go runtime's own collection off. A collection stops all threads and waits
// for the forking one, which waits until its child has become a program. A process of the sandbox can stop that child, and
// would thereby stop the reaper too, which has to kill the child.
type garbage struct {
	forks *sync.Mutex // held by the forking thread
	spent atomic.Int64

	mu   sync.Mutex
	next uint64 // heap size at which to collect
}

// count adds the approximate number of allocated bytes. It never blocks.
func (g *garbage) count(bytes int) { g.spent.Add(int64(bytes)) }

// collect runs a collection if it is due. The forking thread, and threads that a fork waits for, must not call it.
func (g *garbage) collect() {
	if g.spent.Load() < spendable || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	g.spent.Store(0)
	if heap() < max(g.next, leastHeap) {
		return
	}
	g.forks.Lock()
	runtime.GC()
	g.forks.Unlock()
	g.next = 2 * heap()
}

// heap returns the size of the heap in bytes, garbage included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
