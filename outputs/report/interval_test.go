package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"trajgen/outputs/estimate"
	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

// tasksOf are tasks of one sample each, so many of which succeeded.
func tasksOf(successes, tasks int) []*episode.Episode {
	rewards := make([][]float64, tasks)
	for i := range rewards {
		rewards[i] = []float64{0}
		if i < successes {
			rewards[i][0] = 1
		}
	}
	return byTask(rewards...)
}

// TestIntervals compares with what scipy gives for the same formulas.
func TestIntervals(t *testing.T) {
	tests := []struct {
		name            string
		give            []*episode.Episode
		mean, low, high float64
	}{
		{"few tasks", byTask([]float64{1, 1, 0}, []float64{0, 0}, []float64{1}), 5. / 9, 0.0000100824, 0.9999994319},
		{"all succeed", tasksOf(10, 10), 1, 0.6117633106, 1},
		{"15 of 20", tasksOf(15, 20), 0.75, 0.4824570879, 0.9248066945},
		{"73 of 100", tasksOf(73, 100), 0.73, 0.6300920300, 0.8153198360},
		{"none", tasksOf(0, 10), 0, 0, 1 - 0.6117633106},
		// Outside of 0 and 1: s/sqrt(n) = 1.290994/2; t(3) = 3.182446.
		{"other values", byTask([]float64{1}, []float64{2}, []float64{3}, []float64{4}), 2.5, 2.5 - 2.054260, 2.5 + 2.054260},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := reportOf(report.Meta{}, tt.give...).Reward
			if got.Mean == nil || got.Low == nil || !near(*got.Mean, tt.mean) || !near(*got.Low, tt.low) || !near(*got.High, tt.high) {
				t.Errorf("reward = %s, want %v [%v, %v]", show(got), tt.mean, tt.low, tt.high)
			}
			if got.Method == "t" != strings.HasPrefix(got.Note, "3 of the values are not between 0 and 1 (from 1 to 4)") || got.Method == "t" != (got.Outside == 3) {
				t.Errorf("method %q, %d outside, with the note %q", got.Method, got.Outside, got.Note)
			}
		})
	}
	suite := reportOf(report.Meta{}, byTask([]float64{1, 1, 0}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{1, 0, 1})...).SuccessRate.FixedSuite
	if suite == nil || !near(suite.Low, 0.3258409279) || !near(suite.High, 0.8021840881) {
		t.Errorf("of these very tasks: %s, want 0.3258 to 0.8022", show(suite))
	}
	if suite := reportOf(report.Meta{}, tasksOf(3, 9)...).SuccessRate.FixedSuite; suite != nil {
		t.Errorf("of these very tasks with one sample each: %s, want nothing", show(suite))
	}
}

// TestIntervalsArePossible holds that intervals of what lies between 0 and 1 do, have the estimate in them, and are no points
// where few tasks agree; and those of differences between -1 and 1 likewise.
func TestIntervalsArePossible(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	check := func(name string, mean, low, high, least float64) {
		t.Helper()
		if !(least <= low && low <= mean+1e-9 && mean-1e-9 <= high && high <= 1 && high-low > 0.001) {
			t.Errorf("%s: %v [%v, %v]", name, mean, low, high)
		}
	}
	for range 500 {
		easy := []float64{0, 0.1, 0.5, 0.9, 1}[rng.IntN(5)]
		var one, other [][]float64
		for range 2 + rng.IntN(9) {
			play := func() []float64 {
				rewards := make([]float64, 1+rng.IntN(3))
				for i := range rewards {
					if rewards[i] = rng.Float64(); rng.IntN(3) > 0 { // in part
						rewards[i] = float64(int(rewards[i] + easy))
					}
				}
				return rewards
			}
			one, other = append(one, play()), append(other, play())
		}
		from, to := byTask(one...), byTask(other...)
		r, d := reportOf(report.Meta{}, from...), compare(from, to)
		name := fmt.Sprint(one, other)
		for _, e := range []estimate.Estimate{r.Reward, r.SuccessRate} {
			check(name, *e.Mean, *e.Low, *e.High, 0)
			if e.FixedSuite != nil {
				check(name+", these tasks", *e.Mean, e.FixedSuite.Low, e.FixedSuite.High, 0)
			}
		}
		for _, rates := range [][]estimate.PassRate{r.PassAtK, r.PassHatK} {
			for _, rate := range rates {
				if rate.Low != nil {
					check(name+", pass", rate.Value, *rate.Low, *rate.High, 0)
				}
			}
		}
		for _, e := range []estimate.Estimate{d.Reward.Change, d.Success.Change} {
			check(name+", change", *e.Mean, *e.Low, *e.High, -1)
			if e.FixedSuite != nil {
				check(name+", change of these tasks", *e.Mean, e.FixedSuite.Low, e.FixedSuite.High, -1)
			}
		}
	}
}

// TestIntervalsHold plays suites whose truth is known. Where nine of ten easy tasks succeed, all of five often do: the
// interval of Student's t is then a point, and holds less than half of the time.
func TestIntervalsHold(t *testing.T) {
	const nights, tasks = 1000, 5
	rng := rand.New(rand.NewPCG(7, 7))
	easy := func() float64 { return []float64{1, 1, 1, 1, 0.5}[rng.IntN(5)] } // 0.9 in the mean
	play := func(p float64, samples int) []float64 {
		rewards := make([]float64, samples)
		for i := range rewards {
			if rng.Float64() < p {
				rewards[i] = 1
			}
		}
		return rewards
	}
	var one, student, suite, paired int
	for range nights {
		var once, often, again [][]float64
		truth := 0.0
		for range tasks {
			p := easy()
			truth += p / tasks
			once, often, again = append(once, play(p, 1)), append(often, play(p, 4)), append(again, play(p, 4))
		}
		if r := reportOf(report.Meta{}, byTask(once...)...).SuccessRate; *r.Low <= 0.9 && 0.9 <= *r.High {
			one++
		}
		if i := estimate.Student(slices.Concat(once...)); i.Low <= 0.9 && 0.9 <= i.High {
			student++
		}
		if i := reportOf(report.Meta{}, byTask(often...)...).SuccessRate.FixedSuite; i.Low <= truth && truth <= i.High {
			suite++
		}
		if c := compare(byTask(often...), byTask(again...)).Success.Change; *c.Low <= 0 && 0 <= *c.High && c.FixedSuite.Low <= 0 && 0 <= c.FixedSuite.High {
			paired++
		}
	}
	t.Logf("of %d: tasks like these %d, these very tasks %d, no change %d", nights, one, suite, paired)
	if student > 500 { // the suites would not tell the two apart
		t.Errorf("Student's t holds %d times of %d, want 500 at most", student, nights)
	}
	if one < 970 || suite < 930 || paired < 950 {
		t.Errorf("of %d: tasks like these %d, these very tasks %d, no change %d; want 970, 930, 950 at least", nights, one, suite, paired)
	}
}

// TestTaskKinds follows published tables of Clopper and Pearson's interval: 36 of 36 is the first that proves more than nine of ten.
func TestTaskKinds(t *testing.T) {
	for _, tt := range []struct {
		successes, samples int
		want               string
	}{{36, 36, "stable_pass"}, {35, 35, "unknown"}, {35, 36, "unknown"}, {0, 36, "stable_fail"}, {0, 35, "unknown"},
		{2, 12, "unknown"}, {3, 12, "flaky"}, {9, 12, "flaky"}, {10, 12, "unknown"}, {1, 1, "unknown"}} {
		rewards := make([]float64, tt.samples)
		for i := range tt.successes {
			rewards[i] = 1
		}
		r := reportOf(report.Meta{}, byTask(rewards)...).Tasks
		if got := r.Table[0]; got.Kind != tt.want || got.Samples != tt.samples || got.Successes != tt.successes {
			t.Errorf("%d of %d: %+v, want %s", tt.successes, tt.samples, got, tt.want)
		}
		for _, kind := range r.Kinds {
			if (kind.Count == 1) != (kind.Name == tt.want) {
				t.Errorf("%d of %d: kinds %v", tt.successes, tt.samples, r.Kinds)
			}
		}
	}
}

// TestTaskTable has the worst tasks first, and not more than a reader wants.
func TestTaskTable(t *testing.T) {
	episodes := byTask([]float64{1, 1}, []float64{0, 1}, []float64{0, 0})
	dead := failed("dead", 0)
	dead.Task.Verify = []episode.Check{{}}
	r := reportOf(report.Meta{}, append(episodes, dead, failed("task2", 2), failed("free", 0))...).Tasks
	var order []string
	for _, row := range r.Table {
		order = append(order, row.Task)
	}
	if got := fmt.Sprint(order); got != "[dead task2 task1 task0]" || r.Judged != 3 || r.Always != 1 || r.Sometimes != 1 || r.Never != 1 {
		t.Errorf("tasks %s, %+v; want dead task2 task1 task0", got, r)
	}
	if row := r.Table[1]; row.Errors != 1 || row.Samples != 2 || *row.Reward != 0 {
		t.Errorf("row %+v, want 2 samples and an error", row)
	}
	if r := reportOf(report.Meta{}, tasksOf(0, 130)...).Tasks; len(r.Table) != 100 || r.LeftOut != 30 {
		t.Errorf("%d of 130 tasks are listed, %d left out", len(r.Table), r.LeftOut)
	}
}

// TestUnresolved bounds a mean by what episodes without a verdict could have been.
func TestUnresolved(t *testing.T) {
	episodes := byTask([]float64{1, 1}, []float64{0, 1})
	for n, task := range []string{"task1", "task9", "free"} {
		lost := failed(task, 2+n)
		if task != "free" { // whose task has no check
			lost.Task.Verify = []episode.Check{{}}
		}
		episodes = append(episodes, lost)
	}
	got := reportOf(report.Meta{}, episodes...).SuccessRate
	// task0 is 1; task1 is 1/3 or 2/3 instead of 1/2; task9 is 0 or 1.
	if got.Unresolved != 2 || *got.Mean != 0.75 || got.Tasks != 2 || !near(got.Bounds.Low, 4./9) || !near(got.Bounds.High, 8./9) {
		t.Errorf("success rate %s, want 0.75 between 4/9 and 8/9", show(got))
	}
}
