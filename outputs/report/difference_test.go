package report_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

func compare(from, to []*episode.Episode) *report.Difference {
	c := report.NewComparison()
	for _, ep := range from {
		c.AddFrom(ep)
	}
	for _, ep := range to {
		c.AddTo(ep)
	}
	return c.Finish("monday", "tuesday", []string{"model: was a, now b"})
}

// failed is an episode whose end was not the agent's doing.
func failed(task string, sample int) *episode.Episode {
	return &episode.Episode{Key: episode.Key{Task: task, Sample: sample}, Outcome: episode.ModelError}
}

// TestDifferenceByHand checks the paired interval against figures worked out on paper: of five tasks, the differences
// are 1, 1, 0, 0.5, 0, their mean 0.5. With 0.5 and -0.5 beside them, the mean is 2.5/7, the sum of squares 1.8571 and
// t(0.975, 4) = 2.776.
func TestDifferenceByHand(t *testing.T) {
	d := compare(byTask([]float64{0}, []float64{0}, []float64{1}, []float64{0, 1}, []float64{1, 1}),
		byTask([]float64{1}, []float64{1}, []float64{1}, []float64{1, 1}, []float64{1}))
	e := d.Success.Change
	half := 2.7764451 * math.Sqrt(1.857142857/42)
	if e.N != 5 || !near(*e.Mean, 0.5) || !near(*e.Low, 2.5/7-half) || !near(*e.High, 2.5/7+half) {
		t.Errorf("change = %s, want 0.5 and %v ± %v over 5 tasks", show(e), 2.5/7, half)
	}
	if d.Estimand == "" || d.Elapsed.Change.Method != "t" {
		t.Errorf("estimand %q, method for seconds %q", d.Estimand, d.Elapsed.Change.Method)
	}
	if !near(*d.Success.From, 0.5) || !near(*d.Success.To, 1) {
		t.Errorf("success from %v to %v, want 0.5 and 1", *d.Success.From, *d.Success.To)
	}
	if d.Better != 3 || d.Worse != 0 || d.Same != 2 || !near(*d.SignP, 0.25) {
		t.Errorf("better %d, worse %d, same %d, p %v, want 3, 0, 2 and 1/4", d.Better, d.Worse, d.Same, *d.SignP)
	}
	var names []string
	for _, c := range d.Changed {
		names = append(names, c.Task)
	}
	if diff := cmp.Diff([]string{"task0", "task1", "task3"}, names); diff != "" {
		t.Errorf("changed tasks (-want +got):\n%s", diff)
	}
	if want := []report.OutcomeMove{{From: episode.Failure, To: episode.Success, Count: 3}}; !cmp.Equal(want, d.Moves) {
		t.Errorf("moves = %v, want %v", d.Moves, want)
	}
}

// TestDifferenceLeavesErrorsOut: an outage is no failure, and a task of which one run knows nothing proves nothing.
func TestDifferenceLeavesErrorsOut(t *testing.T) {
	from := append(byTask([]float64{1}, []float64{1}, []float64{1}), judged("only-from", 0, 1))
	to := append(byTask([]float64{1}, []float64{1}), failed("task2", 0), judged("only-to", 0, 1))
	d := compare(from, to)
	if want := (report.PairedTasks{Compared: 2, Uncompared: 1, OnlyFrom: 1, OnlyTo: 1}); d.Tasks != want {
		t.Errorf("tasks = %+v, want %+v", d.Tasks, want)
	}
	if d.Worse != 0 || *d.Success.To != 1 {
		t.Errorf("worse %d, success %v: the outage counts as a failure", d.Worse, *d.Success.To)
	}
	if want := []report.OutcomeMove{{From: episode.Success, To: episode.ModelError, Count: 1}}; !cmp.Equal(want, d.Moves) {
		t.Errorf("moves = %v, want %v", d.Moves, want)
	}
}

func TestDifferenceVerdict(t *testing.T) {
	many := func(reward float64) (list []*episode.Episode) {
		for n := range 20 {
			r := reward
			if n == 0 {
				r = 1 - reward
			}
			list = append(list, judged(string(rune('a'+n)), 0, r))
		}
		return list
	}
	tests := []struct {
		name     string
		from, to []*episode.Episode
		want     string
	}{
		{"better", many(0), many(1), "better: the interval"},
		{"worse", many(1), many(0), "worse: the interval"},
		{"same", many(1), many(1), "no task changed"},
		{"cannot tell", byTask([]float64{1}, []float64{0}, []float64{1}), byTask([]float64{0}, []float64{1}, []float64{1}), "no difference is proved"},
		{"one task", byTask([]float64{1}), byTask([]float64{0}), "too few tasks"},
		{"nothing", nil, byTask([]float64{0}), "nothing to compare"},
	}
	for _, tt := range tests {
		var page bytes.Buffer
		if err := compare(tt.from, tt.to).WriteTerminal(&page, 100, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), tt.want) {
			t.Errorf("%s: the page does not say %q:\n%s", tt.name, tt.want, page.String())
		}
	}
}

// TestDifferenceIsProvedWhateverIsUnresolved: nine tasks of twenty without a verdict could have gone the other way.
func TestDifferenceIsProvedWhateverIsUnresolved(t *testing.T) {
	for _, lost := range []int{0, 1, 9} {
		from, to := tasksOf(0, 20), tasksOf(20, 20)
		for i := range lost {
			from[i] = failed(to[i].Key.Task, 0)
			from[i].Task.Verify = []episode.Check{{}}
			to[i] = from[i]
		}
		got := compare(from, to).Success
		if want := map[int]int{0: 1, 1: 1, 9: 0}[lost]; got.Proves != want || got.Change.Proves() != 1 || got.Change.Unresolved != 2*lost {
			t.Errorf("%d unresolved: proves %d, want %d: %s", lost, got.Proves, want, show(got))
		}
		if b := got.Change.Bounds; lost > 0 && (!near(b.Low, 1-float64(lost)/10) || b.High != 1) {
			t.Errorf("%d unresolved: bounds %s", lost, show(b))
		}
	}
}

// TestDetectable plays changes of just the size that is to be seen 4 times of 5.
func TestDetectable(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	play := func(p float64) [][]float64 {
		rewards := make([][]float64, 100)
		for i := range rewards {
			for range 4 {
				v := 0.0
				if rng.Float64() < p {
					v = 1
				}
				rewards[i] = append(rewards[i], v)
			}
		}
		return rewards
	}
	first := compare(byTask(play(0.5)...), byTask(play(0.5)...)).Success
	at := *first.Detectable.FixedSuite
	// Twice 0.25/400, and two pseudo tasks: a standard error of 0.0355.
	if at < 0.075 || at > 0.1 || *first.Detectable.Tasks < 0.075 || *first.Detectable.Tasks > 0.11 {
		t.Fatalf("detectable: %s", show(first.Detectable))
	}
	seen := 0
	for range 300 {
		i := compare(byTask(play(0.5-at/2)...), byTask(play(0.5+at/2)...)).Success.Change
		if middle := (i.FixedSuite.Low + i.FixedSuite.High) / 2; middle-(i.FixedSuite.High-middle)*1.6449/1.96 > 0 {
			seen++
		}
	}
	if seen < 215 || seen > 265 {
		t.Errorf("seen %d times of 300, want about 240", seen)
	}
}

// TestDifferenceCorrects: several measures make one that stands out by chance likelier, and only those that can be tested count.
func TestDifferenceCorrects(t *testing.T) {
	d := compare(tasksOf(6, 20), tasksOf(14, 20))
	// Eight differences of 1, twelve of 0, and 0.5 and -0.5: 8/22, of the sum of squares 8.5 - 64/22.
	mean := 8. / 22
	if want := studentP(mean/math.Sqrt((8.5-64./22)/22/21), 19); !near(*d.Success.P, want) {
		t.Errorf("p = %v, want %v", *d.Success.P, want)
	}
	if d.Turns.P != nil || d.Turns.PHolm != nil {
		t.Errorf("turns, which are all equal, have p = %s", show(d.Turns))
	}
	if !near(*d.Success.PHolm, 2**d.Success.P) || !near(*d.Reward.PHolm, 2**d.Reward.P) { // two can be tested
		t.Errorf("corrected: %s and %s", show(d.Success), show(d.Reward))
	}
}

// studentP is twice the upper tail of Student's t by Simpson's rule.
func studentP(t, df float64) float64 {
	density := func(x float64) float64 { return math.Pow(1+x*x/df, -(df+1)/2) }
	a, _ := math.Lgamma((df + 1) / 2)
	b, _ := math.Lgamma(df / 2)
	const steps = 20000
	h, sum := t/steps, 0.0
	for i := range steps {
		x := float64(i) * h
		sum += density(x) + 4*density(x+h/2) + density(x+h)
	}
	return 1 - 2*sum*h/6*math.Exp(a-b)/math.Sqrt(df*math.Pi)
}

// TestDifferenceOfOtherRewards: pseudo tasks, bounds and a fixed suite are of values between 0 and 1.
func TestDifferenceOfOtherRewards(t *testing.T) {
	got := compare(byTask([]float64{1, 1}, []float64{-2, 1}, []float64{1, 0}), byTask([]float64{5, 5}, []float64{1, 1}, []float64{0, 0})).Reward.Change
	if got.Outside != 3 || got.Method != "t" || got.FixedSuite != nil || !strings.HasPrefix(got.Note, "3 of the values are not between 0 and 1 (from -2 to 5)") {
		t.Errorf("change = %s", show(got))
	}
}
