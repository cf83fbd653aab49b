package bench_test

import (
	"slices"
	"testing"

	"trajgen/scripts/bench/internal/bench"
)

func TestGrowth(t *testing.T) {
	g := bench.Growth{Rows: 100}
	g.Spend([]float64{5, 55, 65, 75, 85, 95, 105, 115, 130, 145, 160})
	if want := []float64{5, 1, 1, 1, 1, 1, 1, 1.5, 1.5, 1.5}; !slices.Equal(g.TenthCPUMS, want) || g.LateToEarly != 1.5 || g.CPUMSPerEpisode != 1.55 {
		t.Errorf("got %+v, want tenths of %v, 1.5 times as much late as early, 1.55 ms on average", g, want)
	}
	few := bench.Growth{Rows: 5}
	if few.Spend([]float64{1, 2}); few.LateToEarly != 0 || few.TenthCPUMS != nil {
		t.Errorf("of a run without tenths: %+v", few)
	}
}
