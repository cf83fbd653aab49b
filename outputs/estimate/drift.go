package estimate

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// DriftAlarm is the evidence at which a rate counts as having grown: with nightly numbers, at most one false alarm a year on average.
const DriftAlarm = 365

// UpperRate is the upper 95 % bound of a chance of which k of n independent tries came out, and least at the lowest.
func UpperRate(k, n int, least float64) float64 {
	if k >= n {
		return 1
	}
	return max(least, mathext.InvRegIncBeta(float64(k)+1, float64(n-k), 0.95))
}

// Drift goes on with the evidence that a rate has grown beyond p0, by a night on which k of n calls came out: the e-detector of
// Shin, Ramdas and Rinaldo (2024) for bets on 2, 4 and 10 times the rate.
func Drift(evidence, p0 float64, k, n int) float64 {
	night := 0.0
	for _, factor := range []float64{2, 4, 10} {
		p1 := max(p0, min(0.9, factor*p0))
		if p1 == p0 { // nothing worse to bet on
			night += 1.0 / 3
			continue
		}
		night += math.Exp(float64(k)*math.Log(p1/p0)+float64(n-k)*math.Log((1-p1)/(1-p0))) / 3
	}
	return min(1e12, (evidence+1)*night) // JSON has no infinity
}
