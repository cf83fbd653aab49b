package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Pair is what two plays that are the same up to one call came to differ by: clean − twin for rewards, twin − clean for costs.
type Pair struct {
	Task  string
	P     float64 // the probability with which the twin was planned, over 0: a pair stands for 1/P calls
	Value float64
}

// Mean is a weighted mean with its 95 % interval.
type Mean struct {
	N     int       `json:"n"`
	Tasks int       `json:"tasks"`
	Value float64   `json:"value"`
	SE    float64   `json:"se"`
	Range *Interval `json:"interval"` // nil with less than two tasks
}

// Harm is the mean over all calls that could have been chosen of values between -1 and 1: Hájek's estimator, each pair
// weighted with 1/P. Its error is that of tasks as clusters. Two tasks more of the mean weight, with a half up and a half down,
// stand for what few tasks have not shown.
func Harm(pairs []Pair) Mean {
	sums := byTask(pairs)
	m := weighted(sums)
	m.N = len(pairs)
	if m.Tasks < 2 {
		return m
	}
	total := 0.0
	for _, s := range sums {
		total += s.weight
	}
	each := total / float64(len(sums))
	more := weighted(append(slices.Clone(sums), taskSum{each, each / 2}, taskSum{each, -each / 2}))
	half := T975(m.Tasks-1) * more.SE
	i := Interval{more.Value - half, more.Value + half}.within(-1, 1)
	m.SE, m.Range = more.SE, &Interval{min(i.Low, m.Value), max(i.High, m.Value)}
	return m
}

// Extra is the same of values of any size, such as turns, tokens or USD, without the two tasks more.
func Extra(pairs []Pair) Mean {
	m := weighted(byTask(pairs))
	m.N = len(pairs)
	if m.Tasks > 1 {
		half := T975(m.Tasks-1) * m.SE
		m.Range = &Interval{m.Value - half, m.Value + half}
	}
	return m
}

// Share is the weighted share of pairs whose Value is 1 and not 0: the interval of Clopper and Pearson for as many tosses of a coin
// as the pairs of so many tasks are worth (Korn and Graubard 1998).
func Share(pairs []Pair) Mean {
	m := weighted(byTask(pairs))
	m.N = len(pairs)
	if m.Tasks < 2 {
		return m
	}
	worth := float64(m.Tasks)
	if m.SE > 1e-10 {
		worth = min(float64(m.N), m.Value*(1-m.Value)/m.SE/m.SE)
	}
	t := T975(m.Tasks - 1)
	worth *= z975 * z975 / t / t
	m.Range = new(ClopperPearson(m.Value*worth, worth))
	return m
}

// Versus is the difference a − b of two harms on the same tasks.
func Versus(a, b []Pair) Mean {
	left, right := Harm(a), Harm(b)
	influence := map[string]float64{}
	spread(influence, a, left.Value, 1)
	spread(influence, b, right.Value, -1)
	m := Mean{N: len(a) + len(b), Tasks: len(influence), Value: left.Value - right.Value}
	if m.Tasks < 2 || len(a) == 0 || len(b) == 0 {
		return m
	}
	m.SE = math.Sqrt(squares(influence))
	half := T975(m.Tasks-1) * m.SE
	m.Range = &Interval{m.Value - half, m.Value + half}
	return m
}

// taskSum is what the pairs of a task add up to.
type taskSum struct{ weight, value float64 }

// byTask sums pairs in the order of the tasks' names, so that the last bit of a sum is always the same.
func byTask(pairs []Pair) []taskSum {
	sums := map[string]taskSum{}
	for _, p := range pairs {
		s := sums[p.Task]
		sums[p.Task] = taskSum{s.weight + 1/p.P, s.value + p.Value/p.P}
	}
	return inOrder(sums)
}

// inOrder are the values of a map in the order of its keys.
func inOrder[T any](of map[string]T) []T {
	var all []T
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[key])
	}
	return all
}

// weighted is the ratio of the sums, and its error by linearisation.
func weighted(sums []taskSum) Mean {
	m := Mean{Tasks: len(sums)}
	var weight, value float64
	for _, s := range sums {
		weight, value = weight+s.weight, value+s.value
	}
	if weight == 0 {
		return m
	}
	m.Value = value / weight
	variance := 0.0
	for _, s := range sums {
		d := (s.value - m.Value*s.weight) / weight
		variance += d * d
	}
	if g := float64(len(sums)); g > 1 {
		m.SE = math.Sqrt(variance * g / (g - 1))
	}
	return m
}

// spread adds what each task contributes to the error of a mean.
func spread(influence map[string]float64, pairs []Pair, mean, sign float64) {
	total := 0.0
	for _, p := range pairs {
		total += 1 / p.P
	}
	for _, p := range pairs {
		influence[p.Task] += sign * (p.Value - mean) / p.P / total
	}
}

// squares is the variance of a sum of independent contributions.
func squares(influence map[string]float64) (sum float64) {
	for _, u := range inOrder(influence) {
		sum += u * u
	}
	g := float64(len(influence))
	return sum * g / (g - 1)
}

// PValue is the two-sided chance of a mean so far from 0 if it is 0; 1 without an error.
func (m Mean) PValue() float64 {
	if m.SE == 0 || m.Tasks < 2 {
		return 1
	}
	t, n := m.Value/m.SE, float64(m.Tasks-1)
	return mathext.RegIncBeta(n/2, 0.5, n/(n+t*t))
}

// Holm corrects the p-values of several questions for their number (Holm 1979). The order stays.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	corrected, most := make([]float64, len(p)), 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		corrected[i] = most
	}
	return corrected
}
