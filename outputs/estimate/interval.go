// Package estimate has estimators, their intervals and tests as functions of numbers alone.
package estimate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Intervals of Means, as functions of numbers alone. Those of normal and t distributions hold far less often than they
// say where there are few tasks or most of them agree; these were chosen by simulation.

// Interval is where a mean lies with 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (i Interval) within(least, greatest float64) Interval {
	return Interval{max(least, i.Low), min(greatest, i.High)}
}

const z975 = 1.959963984540054 // quantile of the normal distribution

// Cluster is what intervals need to know of the Plays of one task.
type Cluster struct {
	N       int
	Sum     float64
	squares float64
	Open    int // Plays more that were to be judged and were not
}

func (c *Cluster) Add(v float64) { c.N, c.Sum, c.squares = c.N+1, c.Sum+v, c.squares+v*v }

func (c Cluster) Mean() float64 { return c.Sum / float64(c.N) }

// bounds are the mean with all that is open as 0, and as 1.
func (c Cluster) bounds() Interval {
	n := float64(c.N + c.Open)
	return Interval{c.Sum / n, (c.Sum + float64(c.Open)) / n}
}

// deviation is the sum of the squared distances from the mean.
func (c Cluster) deviation() float64 { return max(0, c.squares-c.Sum*c.Mean()) }

// moments are the mean of values, and the sum of their squared distances from it.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, deviation
}

// Unit is of the mean of independent values between 0 and 1, two at least: that of Clopper and Pearson for as many
// tosses of a coin as the values are worth (Korn and Graubard 1998), with fewer degrees of freedom where there are few.
func Unit(values []float64) Interval {
	mean, deviation := moments(values)
	n := float64(len(values))
	worth := n
	if variance := deviation / n / (n - 1); variance > 1e-20 { // of the mean; what rounding leaves is none
		worth = max(n-1, mean*(1-mean)/variance)
	}
	t := T975(len(values) - 1)
	worth *= z975 * z975 / t / t
	return ClopperPearson(mean*worth, worth)
}

// Student is of the mean of independent values of any size, two at least.
func Student(values []float64) Interval { return meanInterval(values, len(values)-1) }

// Paired is of the mean of independent differences between -1 and 1, two at least. Two differences of a half, one
// up and one down, stand for what so few tasks have not shown.
func Paired(differences []float64) Interval {
	return meanInterval(append(slices.Clone(differences), pseudoTasks...), len(differences)-1).within(-1, 1)
}

var pseudoTasks = []float64{0.5, -0.5}

func meanInterval(values []float64, freedom int) Interval {
	mean, deviation := moments(values)
	n := float64(len(values))
	half := T975(freedom) * math.Sqrt(deviation/n/(n-1))
	return Interval{mean - half, mean + half}
}

// Plays are how many there are of all tasks.
func Plays(tasks []Cluster) (n int) {
	for _, c := range tasks {
		n += c.N
	}
	return n
}

// SuiteVariance is that of the mean of the tasks' means over new Plays of these very tasks. A further task of the greatest
// variance keeps it from being 0 where all Plays of each task agree.
func SuiteVariance(tasks []Cluster) (variance float64) {
	for _, c := range tasks {
		k := float64(c.N)
		if c.N > 1 {
			variance += c.deviation() / (k - 1) / k
		} else {
			variance += 0.25 // the greatest that it can be
		}
	}
	n := float64(len(tasks))
	return (variance + 0.25*n/float64(Plays(tasks))) / n / n
}

// hasVariance reports whether there are enough Plays to say something of their variance: two to a task.
func hasVariance(tasks []Cluster) bool { return len(tasks) > 1 && Plays(tasks) >= 2*len(tasks) }

// Expected is the variance to expect of a further play of each task: that of a coin whose chance these Plays showed, or where values
// other than 0 and 1 were seen, the task's own drawn to that of all.
func Expected(tasks []Cluster) []float64 {
	const a = 0.1 // of a beta distribution: most coins are far from fair
	coins, deviation, freedom := true, 0.0, 0
	for _, c := range tasks {
		coins = coins && c.squares == c.Sum
		if c.N > 1 {
			deviation, freedom = deviation+c.deviation(), freedom+c.N-1
		}
	}
	pooled := 0.25
	if freedom > 0 {
		pooled = deviation / float64(freedom)
	}
	expected := make([]float64, len(tasks))
	for i, c := range tasks {
		n := float64(c.N)
		switch {
		case coins:
			expected[i] = (a + c.Sum) * (a + n - c.Sum) / ((2*a + n) * (2*a + n + 1))
		case c.N == 0:
			expected[i] = pooled
		default:
			expected[i] = (2*pooled + c.deviation()) / (1 + n)
		}
	}
	return expected
}

// Suite is of the mean of these very tasks' Means, which are between 0 and 1: Wilson's for as many tosses of a coin
// as the Plays are worth. It is nil where the variance is not defined.
func Suite(tasks []Cluster) *Interval {
	if !hasVariance(tasks) {
		return nil
	}
	mean := 0.0
	for _, c := range tasks {
		mean += c.Mean() / float64(len(tasks))
	}
	return new(Wilson(mean, max(float64(Plays(tasks)), mean*(1-mean)/SuiteVariance(tasks))))
}

// SuiteDifference is of the difference between two runs on these very tasks, nil where a variance is not defined.
func SuiteDifference(from, to []Cluster) *Interval {
	if !hasVariance(from) || !hasVariance(to) {
		return nil
	}
	difference := 0.0
	for i := range from {
		difference += (to[i].Mean() - from[i].Mean()) / float64(len(from))
	}
	half := z975 * math.Sqrt(SuiteVariance(from)+SuiteVariance(to))
	return new(Interval{difference - half, difference + half}.within(-1, 1))
}

// ClopperPearson is the exact interval of a share. Neither number needs to be whole.
func ClopperPearson(successes, n float64) Interval {
	i := Interval{0, 1}
	if successes > 0 {
		i.Low = mathext.InvRegIncBeta(successes, max(0, n-successes)+1, 0.025)
	}
	if successes < n {
		i.High = mathext.InvRegIncBeta(successes+1, n-successes, 0.975)
	}
	return i
}

// Wilson is Wilson's score interval of a share.
func Wilson(share, n float64) Interval {
	const zz = z975 * z975
	middle, half := share+zz/2/n, z975*math.Sqrt(share*(1-share)/n+zz/4/n/n)
	return Interval{(middle - half) / (1 + zz/n), (middle + half) / (1 + zz/n)}.within(0, 1)
}

// T975 is the 97.5 % quantile of Student's t distribution.
func T975(df int) float64 { return upperT(0.025, df) }

// upperT is what Student's t exceeds with the chance of tail, which is less than a half.
func upperT(tail float64, df int) float64 {
	n := float64(df)
	x := mathext.InvRegIncBeta(n/2, 0.5, 2*tail)
	return math.Sqrt(n * (1 - x) / x)
}

// PassAtK is the chance that one of k Plays at least succeeds, of n Plays of which c did: 1 − C(n−c,k)/C(n,k), which is not
// biased (Chen et al., "Evaluating Large Language Models Trained on Code", 2021).
func PassAtK(n, c, k int) float64 { return 1 - PassHatK(n, n-c, k) }

// PassHatK is the chance that all of k Plays succeed: C(c,k)/C(n,k) (Yao et al., "τ-bench", 2024).
func PassHatK(n, c, k int) float64 {
	all := 1.0
	for j := range k {
		all *= float64(max(0, c-j)) / float64(n-j)
	}
	return all
}

// SignTest is the two-sided exact binomial test of a fair coin.
func SignTest(better, worse int) *float64 {
	n, k := float64(better+worse), float64(min(better, worse))
	if n == 0 {
		return nil
	}
	return new(min(1, 2*mathext.RegIncBeta(n-k, k+1, 0.5)))
}
