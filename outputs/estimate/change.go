package estimate

import (
	"math"
	"slices"
)

// Change is a mean in each run, over the same tasks with equal weight, and the change between them.
//
// The interval of the change is over the differences task by task: what the runs have in common, easy and hard tasks,
// takes no part in it. Samples of a task are averaged first.
type Change struct {
	From   *float64 `json:"from"`
	To     *float64 `json:"to"`
	Change Estimate `json:"change"`
	// Proves is 1 or -1 when the interval of the change lies on one side of zero, and would whatever unresolved plays had come to.
	Proves int `json:"proves"`
	// P is the two-sided p value of the mean and the error that the interval is of; PHolm is corrected for the number of the
	// measures that have one. Null where all differences are equal, or there are less than two.
	P          *float64   `json:"p"`
	PHolm      *float64   `json:"p_holm"`
	Detectable Detectable `json:"detectable"`
}

// Detectable is the least true change that a comparison as large as this one proves 4 times of 5, tested to one side at 5 %.
type Detectable struct {
	Tasks      *float64 `json:"tasks"` // over tasks like these
	FixedSuite *float64 `json:"fixed_suite"`
}

// Estimand says what the intervals of a Change are about.
const Estimand = "the mean difference over tasks like these, each once; fixed_suite is over these very tasks"

// Comparison collects the plays of the same tasks in two runs.
type Comparison struct{ from, to, openFrom, openTo []Cluster }

// Add adds a task. It is compared if both runs have values of it.
func (c *Comparison) Add(from, to Cluster) {
	if from.N > 0 && to.N > 0 {
		c.from, c.to = append(c.from, from), append(c.to, to)
	}
	if from.N+from.Open > 0 && to.N+to.Open > 0 {
		c.openFrom, c.openTo = append(c.openFrom, from), append(c.openTo, to)
	}
}

// Change compares.
func (c *Comparison) Change(m Method) Change {
	unit := m.Name == MethodPaired.Name // the values are between 0 and 1
	from, to := Means(c.from), Means(c.to)
	differences := minus(to, from)
	change := Change{From: Of(from, MethodT).Mean, To: Of(to, MethodT).Mean, Change: Of(differences, m)}
	change.Proves = change.Change.Proves()
	if unit {
		change.Change.FixedSuite = SuiteDifference(c.from, c.to)
		c.bound(&change)
	}
	if len(differences) < 2 {
		return change
	}
	mean := m.shift(differences)
	if mean.SE > 1e-10 {
		change.P = new(mean.PValue())
	}
	change.Detectable.Tasks = new((upperT(0.05, mean.Tasks-1) + upperT(0.2, mean.Tasks-1)) * mean.SE)
	if unit && hasVariance(c.from) && hasVariance(c.to) {
		change.Detectable.FixedSuite = new((z95 + z80) * math.Sqrt(SuiteVariance(c.from)+SuiteVariance(c.to)))
	}
	return change
}

const z95, z80 = 1.6448536269514722, 0.8416212335729143 // quantiles of the normal distribution

// bound says what unresolved plays could have made of the change.
func (c *Comparison) bound(change *Change) {
	e := &change.Change
	worst, best := make([]float64, len(c.openFrom)), make([]float64, len(c.openFrom))
	for i := range worst {
		e.Unresolved += c.openFrom[i].Open + c.openTo[i].Open
		from, to := c.openFrom[i].bounds(), c.openTo[i].bounds()
		worst[i], best[i] = to.Low-from.High, to.High-from.Low
	}
	if e.Unresolved == 0 {
		return
	}
	low, high := Of(worst, MethodPaired), Of(best, MethodPaired)
	e.Bounds = &Interval{*low.Mean, *high.Mean}
	if low.Proves() != change.Proves || high.Proves() != change.Proves {
		change.Proves = 0
	}
}

// shift is the mean of differences and its error, with the pseudo tasks that the method has.
func (m Method) shift(differences []float64) Mean {
	values := slices.Clone(differences)
	if m.Name == MethodPaired.Name {
		values = append(values, pseudoTasks...)
	}
	mean, deviation := moments(values)
	n := float64(len(values))
	return Mean{N: len(differences), Tasks: len(differences), Value: mean, SE: math.Sqrt(deviation / n / (n - 1))}
}

func minus(a, b []float64) []float64 {
	differences := make([]float64, len(a))
	for i := range differences {
		differences[i] = a[i] - b[i]
	}
	return differences
}

// Correct corrects the p values of several changes for their number.
func Correct(changes []*Change) {
	var tested []*Change
	var p []float64
	for _, c := range changes {
		if c.P != nil {
			tested, p = append(tested, c), append(p, *c.P)
		}
	}
	for i, corrected := range Holm(p) {
		tested[i].PHolm = new(corrected)
	}
}
