package estimate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"trajgen/outputs/estimate"
)

func TestRanks(t *testing.T) {
	tests := []struct {
		n         int
		q         float64
		low, high int
	}{
		{100, 0.5, 40, 61}, {100, 0.95, 90, 100},
		{400, 0.5, 180, 221}, {400, 0.95, 371, 389}, {400, 0.99, 392, 400},
		{1000, 0.99, 983, 997},
		{5, 0.5, 0, 6}, {6, 0.5, 1, 6}, {71, 0.95, 63, 72}, {72, 0.95, 64, 72}, {367, 0.99, 359, 368}, {368, 0.99, 360, 368},
	}
	for _, tt := range tests {
		if low, high := estimate.Ranks(tt.n, tt.q); low != tt.low || high != tt.high {
			t.Errorf("Ranks(%d, %v) = %d, %d, want %d, %d", tt.n, tt.q, low, high, tt.low, tt.high)
		}
	}
}

// TestQuantileCoverage holds that intervals have the true quantile in them as often as they say.
func TestQuantileCoverage(t *testing.T) {
	t.Parallel()
	const repetitions = 2000
	for _, q := range []float64{0.5, 0.95, 0.99} {
		held := 0
		for repetition := range repetitions {
			random := rand.New(rand.NewPCG(91, uint64(repetition)))
			values := make([]float64, 400)
			for i := range values {
				values[i] = random.Float64()
			}
			slices.Sort(values)
			if got := estimate.QuantileOf(values, q); *got.Low <= q && q <= *got.High {
				held++
			}
		}
		if share := float64(held) / repetitions; share < 0.95 || share > 0.985 {
			t.Errorf("intervals of the quantile %v hold it in %.3f of samples, want 0.96 to 0.98", q, share)
		}
	}
}

func TestClopperPearson(t *testing.T) {
	got := estimate.ClopperPearson(0, 100)
	if want := 1 - math.Pow(0.025, 0.01); math.Abs(got.High-want) > 1e-9 {
		t.Errorf("0 of 100: at most %v, want %v", got.High, want)
	}
	if got := estimate.ClopperPearson(100, 100); math.Abs(got.Low-0.9638) > 1e-4 || got.High != 1 {
		t.Errorf("100 of 100: %v to %v, want 0.9638 to 1", got.Low, got.High)
	}
}

// TestDriftTimes simulates when alarms come, with p0 of 1 %: how many nights pass until a false one, and until one for a rate that
// has grown. What is wanted comes from 1,000 to 20,000 repetitions.
func TestDriftTimes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		calls       int
		rate        float64
		repetitions int
		mean        float64 // of the nights; 0 to look at the median
		median      float64
	}{
		{50, 0.01, 200, 2283, 0}, {200, 0.01, 100, 5222, 0}, {1000, 0.01, 60, 14093, 0},
		{50, 0.02, 400, 0, 32}, {200, 0.02, 400, 0, 11}, {1000, 0.02, 400, 0, 3},
		{50, 0.03, 400, 0, 10}, {200, 0.03, 400, 0, 3}, {1000, 0.03, 400, 0, 1},
		{50, 0.1, 400, 0, 1}, {200, 0.1, 400, 0, 1},
	}
	for _, tt := range tests {
		if testing.Short() && tt.mean > 0 {
			continue
		}
		draw := binomial(tt.calls, tt.rate)
		var nights []float64
		sum := 0.0
		for repetition := range tt.repetitions {
			random := rand.New(rand.NewPCG(92, uint64(repetition)))
			evidence, night := 0.0, 0.0
			for evidence < estimate.DriftAlarm {
				night++
				evidence = estimate.Drift(evidence, 0.01, draw(random), tt.calls)
			}
			nights, sum = append(nights, night), sum+night
		}
		slices.Sort(nights)
		mean, median := sum/float64(len(nights)), nights[len(nights)/2]
		t.Logf("%d calls a night at %v: mean %.0f, median %.0f nights", tt.calls, tt.rate, mean, median)
		if tt.mean > 0 && math.Abs(mean-tt.mean) > 0.25*tt.mean {
			t.Errorf("%d calls a night: a false alarm each %.0f nights, want %.0f", tt.calls, mean, tt.mean)
		}
		if tt.mean == 0 && math.Abs(median-tt.median) > max(1, 0.2*tt.median) {
			t.Errorf("%d calls a night at %v: found after %.0f nights, want %.0f", tt.calls, tt.rate, median, tt.median)
		}
	}
}

// binomial draws how many of n tries come out.
func binomial(n int, p float64) func(*rand.Rand) int {
	cumulated, chance := []float64{}, math.Pow(1-p, float64(n))
	for k, sum := 0, 0.0; k <= n; k++ {
		sum += chance
		cumulated = append(cumulated, sum)
		chance *= float64(n-k) / float64(k+1) * p / (1 - p)
	}
	return func(random *rand.Rand) int {
		k, _ := slices.BinarySearch(cumulated, random.Float64())
		return min(k, n)
	}
}
