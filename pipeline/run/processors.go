package run

import (
	"runtime/metrics"
	"sync"
	"time"
)

// Held is how long requests have waited for this process's processors, which all requests to models share.
func (m *models) Held() time.Duration { return m.processors.Load().Held }

// backlog returns a function that counts the goroutines which wait for a processor. It costs a tenth of a microsecond.
func backlog() func() int {
	var mu sync.Mutex
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
}
