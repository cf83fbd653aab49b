package gate

import (
	"math"

	"trajgen/outputs/estimate"
)

// grid is how fine the ends of an interval are.
const grid = 0.0025

// Difference is the mean of the steps, and where the true difference lies whenever one looked: all values that bets against them
// have not refuted.
func (w *Walk) Difference() (mean float64, in estimate.Interval) {
	mean = (w.fail.mean + w.pass.mean) / 2
	return mean, estimate.Interval{Low: w.end(w.pass.mean, -1, w.ofPass), High: w.end(w.fail.mean, 1, w.ofFail)}
}

// end goes outward from the mean to the first value that is refuted. On side 1, that is a claim that the difference is as great.
func (w *Walk) end(from, side float64, values []float64) float64 {
	p := w.plan
	for m := from; math.Abs(m) <= 1; m += side * grid {
		b := newBets(m, side, stake/(p.W+math.Abs(m)), p.V0, p.Margin, 3*p.Margin)
		if b.refuted(values, math.Log(2/p.Alpha)) {
			return m
		}
	}
	return side
}
