package estimate

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Quantile is a quantile of independent values, and the order statistics between which it lies with 95 % confidence. An end is
// nil where there are too few values for it.
type Quantile struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// QuantileOf estimates the quantile q of values that are sorted; of none it is zero.
func QuantileOf(sorted []float64, q float64) Quantile {
	n := len(sorted)
	if n == 0 {
		return Quantile{}
	}
	estimate := Quantile{Value: sorted[max(1, int(math.Ceil(q*float64(n)-1e-9)))-1]}
	low, high := Ranks(n, q)
	if low > 0 {
		estimate.Low = new(sorted[low-1])
	}
	if high <= n {
		estimate.High = new(sorted[high-1])
	}
	return estimate
}

// Ranks are the ranks from 1 of the order statistics between which the quantile q of n values lies with 95 % confidence. low is 0,
// and high n+1, where that end does not exist.
func Ranks(n int, q float64) (low, high int) {
	atLeast := func(k int) float64 { // P(B >= k), B ~ Bin(n, q)
		if k <= 0 {
			return 1
		}
		return mathext.RegIncBeta(float64(k), float64(n-k)+1, q)
	}
	low = sort.Search(n, func(l int) bool { return 1-atLeast(l+1) > 0.025 }) // the least l whose successor reaches too far
	high = 1 + sort.Search(n, func(u int) bool { return atLeast(u+1) <= 0.025 })
	return low, high
}
