package guest

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

const (
	// spendable is about how much may be allocated between two looks at the heap. Most guests never look.
	spendable = 1 << 20
	// leastHeap is how much a heap holds before it is collected, as in the Go runtime.
	leastHeap = 4 << 20
)

// Env is what a guest that is a process of its own is started with.
var Env = []string{"GOTRACEBACK=single", "GOGC=off"}

// garbage is collected between two forks, and never by the Go runtime itself, which Env sees to. A collection stops all
// threads, also the one that forks, and that waits until its child has become a program. Whoever stops that child meanwhile, as
// any process of the sandbox may, would so stop the reaper too, who is there to end it.
type garbage struct {
	forks *sync.Mutex // held by a thread that forks
	spent atomic.Int64

	mu   sync.Mutex
	next uint64 // size of the heap that is to be collected
}

// count says that so many bytes were allocated, more or less. It never waits.
func (g *garbage) count(bytes int) { g.spent.Add(int64(bytes)) }

// collect does it if it is due. Not for a thread that forks, nor for one that a fork needs.
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

// heap is how many bytes it holds, garbage among them.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
