package bench

import (
	"math"
	"runtime/metrics"
)

// Waits is how long goroutines that could run waited for a processor, in this process.
type Waits struct {
	P50MS float64 `json:"sched_p50_ms"`
	P99MS float64 `json:"sched_p99_ms"`
	MaxMS float64 `json:"sched_max_ms"`
}

const schedLatencies = "/sched/latencies:seconds"

// watchWaits begins to watch; the function that it returns says what was seen since.
func watchWaits() func() Waits {
	before := readWaits()
	return func() Waits {
		after := readWaits()
		counts := make([]uint64, len(after.Counts))
		for i := range counts {
			counts[i] = after.Counts[i] - before.Counts[i]
		}
		at := func(share float64) float64 { return 1000 * quantile(counts, after.Buckets, share) }
		return Waits{at(0.5), at(0.99), at(1)}
	}
}

func readWaits() metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: schedLatencies}}
	metrics.Read(sample)
	h := sample[0].Value.Float64Histogram()
	return metrics.Float64Histogram{Counts: append([]uint64(nil), h.Counts...), Buckets: h.Buckets}
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
