package gate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"trajgen/outputs/estimate"
	"trajgen/outputs/gate"
)

// planOf draws tasks with these probabilities.
func planOf(q ...float64) *gate.Plan {
	p := &gate.Plan{Question: gate.Usual, Tasks: make([]string, len(q)), Q: q, V0: 0.2}
	return p.Begin()
}

// TestEvidence holds the arithmetic to figures of another implementation.
func TestEvidence(t *testing.T) {
	tests := []struct {
		q          []float64
		steps      int
		fail, pass float64
	}{
		{[]float64{0.25, 0.25, 0.25, 0.25}, 1, -0.008765491, 0.004469836},
		{[]float64{0.25, 0.25, 0.25, 0.25}, 100, -0.196019271, -0.737051235},
		{[]float64{0.25, 0.25, 0.25, 0.25}, 400, 0.472118175, -2.945460251},
		{[]float64{0.1, 0.2, 0.3, 0.4}, 1, -0.007604732, 0.004469836},
		{[]float64{0.1, 0.2, 0.3, 0.4}, 100, -0.171598955, -1.046328041},
		{[]float64{0.1, 0.2, 0.3, 0.4}, 400, 0.552374241, -2.562514394},
	}
	for _, tt := range tests {
		walk := planOf(tt.q...).Walk()
		for step := 1; step <= tt.steps; step++ {
			base, candidate := 0.0, 0.0
			switch {
			case step%7 == 0:
				base = 1
			case step%11 == 0:
				candidate = 1
			}
			walk.Step(step%4, gate.Value(base), gate.Value(candidate))
		}
		fail, pass := walk.Evidence()
		if math.Abs(fail-tt.fail) > 1e-9 || math.Abs(pass-tt.pass) > 1e-9 {
			t.Errorf("q %v: evidence at step %d is %.9f, %.9f, want %.9f, %.9f", tt.q, tt.steps, fail, pass, tt.fail, tt.pass)
		}
	}
}

// suite is a hundred tasks: a quarter never succeed, a quarter always, the others as chance has it. The candidate's log-odds are lower,
// so that the mean falls by drop.
func suite(random *rand.Rand, drop float64) (base, candidate []float64) {
	for {
		base = base[:0]
		for i := range 100 {
			switch i % 4 {
			case 0:
				base = append(base, 0)
			case 1:
				base = append(base, 1)
			default:
				base = append(base, random.Float64())
			}
		}
		shifted := func(by float64) (all []float64, mean float64) {
			for _, p := range base {
				if p > 0 && p < 1 {
					p = 1 / (1 + (1-p)/p*math.Exp(by))
				}
				all, mean = append(all, p), mean+p/100
			}
			return all, mean
		}
		_, before := shifted(0)
		low, high := 0.0, 50.0
		for range 60 {
			if _, mean := shifted((low + high) / 2); before-mean < drop {
				low = (low + high) / 2
			} else {
				high = (low + high) / 2
			}
		}
		var mean float64
		if candidate, mean = shifted(low); math.Abs(before-mean-drop) < 1e-6 {
			return base, candidate
		}
	}
}

// nights counts the verdicts of simulated nights of at most 4,000 plays, their plays, and how often the interval holds the drop.
// The tasks are weighed by history plays of each; without, all are drawn alike.
func nights(n int, drop, lost float64, history int) (verdicts map[gate.Verdict]int, infra int, plays, held float64) {
	verdicts = map[gate.Verdict]int{}
	for night := range n {
		random := rand.New(rand.NewPCG(3, uint64(night)*256))
		base, candidate := suite(random, drop)
		play := func(p float64) estimate.Interval {
			switch {
			case random.Float64() < lost:
				return gate.Unresolved
			case random.Float64() < p:
				return gate.Value(1)
			}
			return gate.Value(0)
		}
		var known []estimate.Cluster
		if history > 0 {
			known = make([]estimate.Cluster, len(base))
			for i := range known {
				for range history {
					known[i].Add(toss(random, base[i]).Low)
				}
			}
		}
		plan := gate.NewPlan(gate.Usual, uint64(night), "", make([]string, len(base)), known)
		walk := plan.Walk()
		for step := 1; step <= 2000; step++ {
			i := plan.Draw(step)
			if walk.Step(i, play(base[i]), play(candidate[i])) != "" {
				break
			}
		}
		r := walk.Result("success")
		verdicts[r.Verdict]++
		if r.Reason == gate.ReasonInfra {
			infra++
		}
		plays += float64(r.Plays) / float64(n)
		if r.Low <= -drop && -drop <= r.High {
			held += 1 / float64(n)
		}
	}
	return verdicts, infra, plays, held
}

// TestRates holds how often each verdict is said. A false verdict in 5 % of 300 nights would be one in more than 27 with a chance below
// 0.1 %.
func TestRates(t *testing.T) {
	tests := []struct {
		drop               float64
		nights, history    int
		leastPass, maxPass int
		leastFail, maxFail int
		least, most        float64 // mean plays
	}{
		{0.03, 300, 0, 0, 27, 0, 27, 0, 4000},
		{0, 300, 0, 235, 282, 0, 4, 1830, 2200},
		{0.1, 200, 0, 0, 1, 199, 200, 0, 700},
		{0.03, 150, 12, 0, 17, 0, 17, 0, 4000},
		{0, 150, 12, 128, 150, 0, 2, 1300, 1800},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("drop of %v, %d plays known", tt.drop, tt.history), func(t *testing.T) {
			t.Parallel()
			got, _, plays, held := nights(tt.nights, tt.drop, 0, tt.history)
			t.Logf("%v in %.0f plays, intervals hold the truth in %.3f", got, plays, held)
			if got[gate.Pass] < tt.leastPass || got[gate.Pass] > tt.maxPass || got[gate.Fail] < tt.leastFail || got[gate.Fail] > tt.maxFail {
				t.Errorf("verdicts of %d nights: %v, want PASS in %d to %d, FAIL in %d to %d", tt.nights, got, tt.leastPass, tt.maxPass, tt.leastFail, tt.maxFail)
			}
			if plays < tt.least || plays > tt.most {
				t.Errorf("mean plays %.0f, want %.0f to %.0f", plays, tt.least, tt.most)
			}
			if held < 0.95 {
				t.Errorf("intervals hold the true difference in %.3f of nights, want 0.95 at least", held)
			}
		})
	}
}

// TestUnresolvedCost holds that plays without a value never make a verdict, and are named when they prevented one.
func TestUnresolvedCost(t *testing.T) {
	t.Parallel()
	got, infra, _, _ := nights(60, 0, 0.015, 0)
	t.Logf("%v, %d for want of resolved plays", got, infra)
	if got[gate.Fail] > 1 || got[gate.Pass] > 40 || infra < 10 {
		t.Errorf("verdicts with 1.5 %% of the plays unresolved: %v, infra %d; want no FAIL, fewer PASS, and infra named", got, infra)
	}
	got, _, _, _ = nights(5, 0, 0.1, 0)
	if got[gate.Broken] != 5 {
		t.Errorf("verdicts with 10 %% of the plays unresolved: %v, want BROKEN", got)
	}
}

// TestWeights holds that history makes steps worth more: tasks that never changed are drawn less, all can still be.
func TestWeights(t *testing.T) {
	history := make([]estimate.Cluster, 100)
	for i := range history {
		for k := range 12 {
			switch i % 4 {
			case 0:
				history[i].Add(0)
			case 1:
				history[i].Add(1)
			default:
				history[i].Add(float64(k % 2))
			}
		}
	}
	weighed, alike := gate.NewPlan(gate.Usual, 7, "n", make([]string, 100), history), gate.NewPlan(gate.Usual, 7, "n", make([]string, 100), nil)
	if most := math.Sqrt((0.5 + 0.03) / 0.03); weighed.W <= 1 || weighed.W > most {
		t.Errorf("greatest weight %v, want above 1 and at most %v", weighed.W, most)
	}
	if a, b := weighed.Steps(0.03, 0.05), alike.Steps(0.03, 0.05); a > b {
		t.Errorf("%.0f steps with history, %.0f without: want fewer", a, b)
	}
	drawn := make([]float64, 100)
	const steps = 100000
	for step := range steps {
		drawn[weighed.Draw(step)]++
	}
	for i, n := range drawn {
		want := weighed.Q[i] * steps
		if math.Abs(n-want) > 5*math.Sqrt(want) {
			t.Errorf("task %d is drawn %v times, want %.0f", i, n, want)
		}
	}
}

// TestLook holds the rates of the fixed mode: a false verdict in 5 % of 300 looks would be one in more than 27 with a chance below 0.1 %.
func TestLook(t *testing.T) {
	t.Parallel()
	look := func(drop float64, k int) map[gate.Verdict]int {
		got := map[gate.Verdict]int{}
		for night := range 300 {
			random := rand.New(rand.NewPCG(101, uint64(night)*256))
			base, candidate := suite(random, drop)
			tasks := make([]gate.Paired, len(base))
			for i := range tasks {
				for range k {
					tasks[i].Base = append(tasks[i].Base, toss(random, base[i]))
					tasks[i].Candidate = append(tasks[i].Candidate, toss(random, candidate[i]))
				}
			}
			got[gate.Usual.Look("success", tasks).Verdict]++
		}
		return got
	}
	if got := look(0.03, 4); got[gate.Pass] > 27 || got[gate.Fail] > 27 {
		t.Errorf("at the margin: %v, want at most 27 PASS and 27 FAIL", got)
	}
	if got := look(0, 4); got[gate.Fail] > 3 || got[gate.Pass] < 100 || got[gate.Pass] > 160 {
		t.Errorf("nothing changed: %v, want PASS in 100 to 160 and no FAIL", got)
	}
	if got := look(0.1, 4); got[gate.Fail] < 280 {
		t.Errorf("worse by 10 points: %v, want FAIL in 280 at least", got)
	}
}

func toss(random *rand.Rand, p float64) estimate.Interval {
	if random.Float64() < p {
		return gate.Value(1)
	}
	return gate.Value(0)
}

// TestLookUnresolved holds that a verdict needs both bounds: 2 of 100 plays that are missing could be the whole margin.
func TestLookUnresolved(t *testing.T) {
	tasks := make([]gate.Paired, 50)
	for i := range tasks {
		tasks[i] = gate.Paired{Base: values(40, 1), Candidate: values(40, 1)}
	}
	if got := gate.Usual.Look("success", tasks); got.Verdict != gate.Pass {
		t.Fatalf("all plays succeed: %+v, want PASS", got)
	}
	for i := range tasks {
		tasks[i].Candidate[0] = gate.Unresolved
	}
	got := gate.Usual.Look("success", tasks)
	if got.Verdict != gate.Inconclusive || got.Reason != gate.ReasonInfra || got.Unresolved != 50 {
		t.Errorf("2.5 %% of the candidate's plays missing: %+v, want INCONCLUSIVE for infra with 50 unresolved", got)
	}
}

func values(n int, x float64) (all []estimate.Interval) {
	for range n {
		all = append(all, gate.Value(x))
	}
	return all
}
