package bench

import (
	"math"
	"runtime/metrics"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Meter watches this process play.
type Meter struct {
	total   int
	half    func()
	began   time.Time
	waiting metrics.Float64Histogram // before

	mu     sync.Mutex // guards what follows
	ended  int
	tenths []float64
}

// NewMeter begins to watch so many episodes. half is called when half of them have ended.
func NewMeter(total int, half func()) *Meter {
	return &Meter{total: total, half: half, began: time.Now(), waiting: schedLatencies(), tenths: []float64{cpuMS(syscall.RUSAGE_SELF)}}
}

// Ended notes that an episode has. It is safe for concurrent use.
func (m *Meter) Ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended++
	if m.ended == m.total*len(m.tenths)/10 {
		m.tenths = append(m.tenths, cpuMS(syscall.RUSAGE_SELF))
	}
	if m.ended == m.total/2 {
		m.half()
	}
}

// Played is what came out.
func (m *Meter) Played() Played {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := schedLatencies()
	for i := range after.Counts {
		after.Counts[i] -= m.waiting.Counts[i]
	}
	return Played{
		Episodes: m.ended, Seconds: time.Since(m.began).Seconds(), TenthCPUMS: m.tenths, SchedP99MS: 1000 * quantile(after.Counts, after.Buckets, 0.99),
	}
}

// schedLatencies is how long goroutines that could run waited for a processor, in this process.
func schedLatencies() metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	h := sample[0].Value.Float64Histogram()
	return metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// quantile is the upper bound of the bucket that holds it; the lower one where there is none.
func quantile(counts []uint64, bounds []float64, share float64) float64 {
	var total, seen uint64
	for _, n := range counts {
		total += n
	}
	for i, n := range counts {
		if seen += n; n > 0 && float64(seen) >= share*float64(total) {
			if math.IsInf(bounds[i+1], 1) {
				return bounds[i]
			}
			return bounds[i+1]
		}
	}
	return 0
}
