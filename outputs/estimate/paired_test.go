package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"trajgen/outputs/estimate"
)

// world is a toy of agents: 69 tasks × 8 clean episodes. An episode calls a tool until three calls made progress or twelve were
// made; a task has its own chance of progress. A fault at a call takes that call's progress, unless the agent recovers.
type world struct {
	*rand.Rand
	recover float64 // chance to recover from a fault
}

func (w world) task(number int) float64 { return 0.1 + 0.6*float64(number)/68 }

// play goes on from so many calls and so much progress.
func (w world) play(chance float64, calls, progress int) (all int, success float64) {
	for ; calls < 12 && progress < 3; calls++ {
		if w.Float64() < chance {
			progress++
		}
	}
	if progress == 3 {
		success = 1
	}
	return calls, success
}

// pairs are the twins of a run of clean episodes: each call by its own coin. With lost, the fault costs a call and maybe the rest.
func (w world) pairs(p float64, fault bool, choose func(clean float64) bool) (pairs []estimate.Pair) {
	for number := range 69 {
		chance := w.task(number)
		for range 8 {
			var progress [13]int // before each call
			calls, done := 0, 0
			for ; calls < 12 && done < 3; calls++ {
				progress[calls] = done
				if w.Float64() < chance {
					done++
				}
			}
			clean := 0.0
			if done == 3 {
				clean = 1
			}
			for call := range calls {
				if w.Float64() >= p || !choose(clean) {
					continue
				}
				twin := 0.0
				switch {
				case !fault:
					_, twin = w.play(chance, call, progress[call])
				case w.Float64() < w.recover: // tries the call again
					_, twin = w.play(chance, call+1, progress[call])
				}
				pairs = append(pairs, estimate.Pair{Task: fmt.Sprintf("task-%02d", number), P: p, Value: clean - twin})
			}
		}
	}
	return pairs
}

func repetitions(t *testing.T, usual int) int {
	if text := os.Getenv("REPETITIONS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func always(float64) bool { return true }

// TestHarmCovers finds planted truths again. REPETITIONS=600 is the whole of it.
func TestHarmCovers(t *testing.T) {
	t.Parallel()
	n := repetitions(t, 150)
	for name, c := range map[string]struct {
		recover float64
		fault   bool
	}{"placebo": {0, false}, "retrier": {0.9, true}, "gives up": {0, true}} {
		// The truth: every call has a twin, many times.
		sum, weight := 0.0, 0.0
		for i := range 40 {
			for _, pair := range (world{rand.New(rand.NewPCG(81, uint64(i))), c.recover}).pairs(1, c.fault, always) {
				sum, weight = sum+pair.Value, weight+1
			}
		}
		truth, held, width, mean := sum/weight, 0, 0.0, 0.0
		if !c.fault {
			truth = 0
		}
		for i := range n {
			m := estimate.Harm(world{rand.New(rand.NewPCG(82, uint64(i))), c.recover}.pairs(0.03, c.fault, always))
			if m.Range.Low <= truth && truth <= m.Range.High {
				held++
			}
			width, mean = width+(m.Range.High-m.Range.Low)/float64(n), mean+m.Value/float64(n)
		}
		coverage := float64(held) / float64(n)
		t.Logf("%s: true harm %.3f, mean estimate %.3f, coverage %.3f, width %.2f", name, truth, mean, coverage, width)
		if least := 0.95 - 3*math.Sqrt(0.95*0.05/float64(n)); coverage < least {
			t.Errorf("%s: coverage %.3f, want %.3f at least", name, coverage, least)
		}
		if math.Abs(mean-truth) > 0.01 {
			t.Errorf("%s: mean estimate %.3f, true harm %.3f", name, mean, truth)
		}
	}
}

// TestChoosingBySuccessIsSeen chooses calls by what the episode did afterwards: the placebo then has a harm, and its interval says so.
func TestChoosingBySuccessIsSeen(t *testing.T) {
	t.Parallel()
	n, seen := repetitions(t, 40), 0
	for i := range n {
		m := estimate.Harm(world{rand.New(rand.NewPCG(83, uint64(i))), 0}.pairs(0.1, false, func(clean float64) bool { return clean == 1 }))
		if m.Range.Low > 0 {
			seen++
		}
	}
	if seen < n*9/10 {
		t.Errorf("a choice by success is seen in %d of %d runs", seen, n)
	}
}

// TestVersusCovers compares two agents.
func TestVersusCovers(t *testing.T) {
	t.Parallel()
	n, held, truth := repetitions(t, 100), 0, 0.0
	for i := range 40 {
		a := world{rand.New(rand.NewPCG(84, uint64(i))), 0}.pairs(1, true, always)
		b := world{rand.New(rand.NewPCG(85, uint64(i))), 0.9}.pairs(1, true, always)
		truth += estimate.Versus(a, b).Value / 40
	}
	for i := range n {
		random := rand.New(rand.NewPCG(86, uint64(i)))
		m := estimate.Versus(world{random, 0}.pairs(0.03, true, always), world{random, 0.9}.pairs(0.03, true, always))
		if m.Range.Low <= truth && truth <= m.Range.High {
			held++
		}
	}
	coverage := float64(held) / float64(n)
	t.Logf("difference %.3f, coverage %.3f", truth, coverage)
	if least := 0.95 - 3*math.Sqrt(0.95*0.05/float64(n)); coverage < least {
		t.Errorf("coverage %.3f, want %.3f at least", coverage, least)
	}
}

// TestShare: with one pair a task and equal weights it is the interval of Clopper and Pearson, but for the fewer degrees of freedom.
func TestShare(t *testing.T) {
	var pairs []estimate.Pair
	for i := range 100 {
		pairs = append(pairs, estimate.Pair{Task: fmt.Sprint(i), P: 0.5, Value: float64(i % 4 / 3)})
	}
	m := estimate.Share(pairs)
	exact := estimate.ClopperPearson(25, 100)
	if m.Value != 0.25 || math.Abs(m.Range.Low-exact.Low) > 0.01 || math.Abs(m.Range.High-exact.High) > 0.01 {
		t.Errorf("share %v in %v, want 0.25 in about %v", m.Value, *m.Range, exact)
	}
	if none := estimate.Share(pairs[:1]); none.Range != nil {
		t.Errorf("the interval of one task: %v", *none.Range)
	}
}

func TestHolm(t *testing.T) {
	got := estimate.Holm([]float64{0.04, 0.01, 0.03, 0.5})
	for i, want := range []float64{0.09, 0.04, 0.09, 0.5} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("corrected %v", got)
			break
		}
	}
}

func TestStake(t *testing.T) {
	s := estimate.Stake{Calls: []float64{3, 3, 3, 3}, Errors: 50, Of: 1000, Harm: estimate.Mean{Value: 0.2, SE: 0.02}, Draws: 2000, Seed: 1}
	value, i := s.Estimate()
	if math.Abs(value-0.03) > 1e-12 || i.Low < 0.015 || i.Low > 0.025 || i.High < 0.035 || i.High > 0.05 {
		t.Errorf("at stake %v in %v", value, i)
	}
	if again, j := s.Estimate(); again != value || j != i {
		t.Error("the same seed gives another interval")
	}
}
