package estimate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Estimate is a mean with its 95 % interval. Plays of one task resemble each other, so the tasks are what is counted: each
// has the same weight, however many Plays it has.
type Estimate struct {
	N     int      `json:"n"`
	Tasks int      `json:"tasks"`
	Mean  *float64 `json:"mean"` // of the tasks' means
	// Low and High are where the mean over all tasks that could have been drawn lies. There is none for a single task.
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	Method string   `json:"method,omitempty"` // of Low and High
	// FixedSuite is where the mean over these very tasks lies, were they played again: of values between 0 and 1, with two Plays to a task.
	FixedSuite *Interval `json:"fixed_suite,omitempty"`
	// Unresolved Plays were to be judged and were not; Bounds are the mean if all of them had been 0, and if all had been 1.
	Unresolved int       `json:"unresolved,omitempty"`
	Bounds     *Interval `json:"bounds,omitempty"`
	// Outside counts values that are not between 0 and 1, where they should be: they have another interval, and no bounds.
	Outside int    `json:"outside,omitempty"`
	Note    string `json:"note,omitempty"` // why the interval is missing, or what it does not say
}

// Proves is 1 or -1 when the whole interval lies on one side of zero.
func (e Estimate) Proves() int {
	switch {
	case e.Low == nil:
		return 0
	case *e.Low > 0:
		return 1
	case *e.High < 0:
		return -1
	}
	return 0
}

// Sample collects values by task.
type Sample struct {
	tasks   map[string]*Cluster
	outside Outside
}

func (s *Sample) Add(task string, value float64) {
	s.outside.Add(value)
	s.task(task).Add(value)
}

// task is the cluster of a task. The name is kept as a copy, as it may be a piece of a large text.
func (s *Sample) task(name string) *Cluster {
	if s.tasks == nil {
		s.tasks = map[string]*Cluster{}
	}
	if s.tasks[name] == nil {
		s.tasks[strings.Clone(name)] = &Cluster{}
	}
	return s.tasks[name]
}

// Unresolved counts a play that was to have a value.
func (s *Sample) Unresolved(task string) { s.task(task).Open++ }

// Of is what is known of a task.
func (s *Sample) Of(task string) Cluster {
	if c := s.tasks[task]; c != nil {
		return *c
	}
	return Cluster{}
}

// played are the tasks with values, always in one order, so that the last bit of a sum is always the same.
func (s *Sample) played() (tasks []Cluster) {
	for _, name := range slices.Sorted(maps.Keys(s.tasks)) {
		if c := s.tasks[name]; c.N > 0 {
			tasks = append(tasks, *c)
		}
	}
	return tasks
}

// Estimate is the mean and its intervals.
func (s *Sample) Estimate() Estimate {
	tasks := s.played()
	m := MethodUnit
	if s.outside.Any() {
		m = MethodT
	}
	e := Of(Means(tasks), m)
	e.N = Plays(tasks)
	for _, c := range s.tasks {
		e.Unresolved += c.Open
	}
	if s.outside.Any() {
		s.outside.Tell(&e)
		return e
	}
	e.FixedSuite = Suite(tasks)
	if e.Unresolved > 0 {
		e.Bounds = s.bounds()
	}
	return e
}

func Means(tasks []Cluster) []float64 {
	values := make([]float64, len(tasks))
	for i, c := range tasks {
		values[i] = c.Mean()
	}
	return values
}

// bounds are the mean with all that is unresolved as 0, and as 1.
func (s *Sample) bounds() *Interval {
	var b Interval
	for _, name := range slices.Sorted(maps.Keys(s.tasks)) {
		task, n := s.tasks[name].bounds(), float64(len(s.tasks))
		b.Low, b.High = b.Low+task.Low/n, b.High+task.High/n
	}
	return &b
}

// Method is a way to an interval of the mean of independent values, two at least.
type Method struct {
	Name     string
	interval func(values []float64) Interval
	wide     float64 // an interval that is wider says little
}

var (
	MethodUnit   = Method{"clopper-pearson", Unit, 0.5} // of values between 0 and 1
	MethodPaired = Method{"t-pseudo-tasks", Paired, 1}  // of differences between values between 0 and 1
	MethodT      = Method{"t", Student, math.Inf(1)}    // of others
)

// Of is of one value for each task.
func Of(values []float64, m Method) Estimate {
	e := Estimate{N: len(values), Tasks: len(values)}
	if len(values) == 0 {
		e.Note = "nothing was judged"
		return e
	}
	mean, _ := moments(values)
	e.Mean = new(max(slices.Min(values), min(slices.Max(values), mean))) // rounding may carry it past the values
	if len(values) == 1 {
		e.Note = "one task: no interval"
		return e
	}
	i := m.interval(values)
	if i.High-i.Low > m.wide {
		e.Note = fmt.Sprintf("%d tasks: the interval spans most of the range", len(values))
	}
	e.Method, e.Low, e.High = m.Name, new(min(i.Low, *e.Mean)), new(max(i.High, *e.Mean)) // but for rounding, it holds the mean
	return e
}

// PassRate is the chance that one of K samples of a task at least succeeds, or that all of them do, averaged over the tasks
// that have at least K samples. Episodes that were not judged do not count.
type PassRate struct {
	K     int      `json:"k"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low"` // as of Estimate
	High  *float64 `json:"high"`
	Tasks int      `json:"tasks"` // with at least K samples
	Of    int      `json:"of"`    // with any sample
}

// PassRates gives the rates for 1, 2, 4, ... samples, as far as any task has so many. The values of s are 0 or 1.
func (s *Sample) PassRates(rate func(n, c, k int) float64) []PassRate {
	rates := []PassRate{}
	tasks := s.played()
	for k := 1; ; k *= 2 {
		var values []float64
		for _, c := range tasks {
			if c.N >= k {
				values = append(values, rate(c.N, int(c.Sum), k))
			}
		}
		if len(values) == 0 {
			return rates
		}
		e := Of(values, MethodUnit)
		rates = append(rates, PassRate{K: k, Value: *e.Mean, Low: e.Low, High: e.High, Tasks: len(values), Of: len(tasks)})
	}
}
