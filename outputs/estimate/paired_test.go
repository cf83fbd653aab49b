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
// made; a task has its own chance of progress. A loud fault takes its call's progress. A silent one spoils it, and with it the answer.
type world struct {
	*rand.Rand
	agent
}

// agent is who plays: its chances to notice a loud and a silent fault, and then to go on from the call as if it had not been made; else
// it fails.
type agent struct{ loud, silent, recover float64 }

// What is done to a call.
const (
	placebo = iota
	loud
	silent
)

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

// pairs are the twins of a run of clean episodes, each call by its own coin: what they lost, and whether they used a wrong value.
func (w world) pairs(p float64, fault int, choose func(clean float64) bool) (harm, used []estimate.Pair) {
	for number := range 69 {
		chance, name := w.task(number), fmt.Sprintf("task-%02d", number)
		for range 8 {
			var progress [13]int // before each call
			calls, done := 0, 0
			for ; calls < 12 && done < 3; calls++ {
				progress[calls] = done
				if w.Float64() < chance {
					done++
				}
				progress[calls+1] = done
			}
			clean := 0.0
			if done == 3 {
				clean = 1
			}
			for call := range calls {
				if w.Float64() >= p || !choose(clean) {
					continue
				}
				twin, wrong := w.twin(chance, call, progress[call], progress[call+1] > progress[call], fault)
				harm = append(harm, estimate.Pair{Task: name, P: p, Value: clean - twin})
				used = append(used, estimate.Pair{Task: name, P: p, Value: wrong})
			}
		}
	}
	return harm, used
}

// twin plays from a call on, which had progress or not.
func (w world) twin(chance float64, call, before int, had bool, fault int) (success, wrong float64) {
	notices := w.Float64() < [...]float64{0, w.loud, w.silent}[fault]
	switch {
	case fault == placebo:
		_, success = w.play(chance, call, before)
	case notices && w.Float64() >= w.recover:
	case !notices && fault == silent && had:
		wrong = 1
	default:
		_, success = w.play(chance, call+1, before)
	}
	return success, wrong
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

var agents = map[string]agent{"retrier": {1, 0, 0.9}, "gives up": {1, 0, 0}, "gullible": {0.5, 0, 0.9}, "checker": {1, 0.8, 0.9}}

// TestHarmCovers finds planted truths again. REPETITIONS=500 is the whole of it.
func TestHarmCovers(t *testing.T) {
	t.Parallel()
	covers(t, "a placebo", agent{}, placebo)
	for name, a := range agents {
		covers(t, name+", loud", a, loud)
		covers(t, name+", silent", a, silent)
	}
}

func covers(t *testing.T, name string, of agent, fault int) {
	t.Helper()
	n := repetitions(t, 150)
	// The truth: every call has a twin, many times.
	var harm, used, count float64
	for i := range 40 {
		lost, wrong := (world{rand.New(rand.NewPCG(81, uint64(i))), of}).pairs(1, fault, always)
		for i := range lost {
			harm, used, count = harm+lost[i].Value, used+wrong[i].Value, count+1
		}
	}
	harm, used = harm/count, used/count
	if fault == placebo {
		harm = 0
	}
	least := 0.95 - 3*math.Sqrt(0.95*0.05/float64(n))
	var held, heldUsed, width, mean float64
	for i := range n {
		lost, wrong := world{rand.New(rand.NewPCG(82, uint64(i))), of}.pairs(0.03, fault, always)
		m := estimate.Harm(lost)
		held += holds(m, harm)
		heldUsed += holds(estimate.Share(wrong), used)
		width, mean = width+(m.Range.High-m.Range.Low)/float64(n), mean+m.Value/float64(n)
	}
	t.Logf("%s: true harm %.3f, mean estimate %.3f, coverage %.3f, width %.2f; used wrong %.3f, coverage %.3f", name, harm, mean, held/float64(n), width,
		used, heldUsed/float64(n))
	if min(held, heldUsed)/float64(n) < least {
		t.Errorf("%s: coverage of the harm %.3f, of what was used %.3f, want %.3f at least", name, held/float64(n), heldUsed/float64(n), least)
	}
	if math.Abs(mean-harm) > 0.012 {
		t.Errorf("%s: mean estimate %.3f, true harm %.3f", name, mean, harm)
	}
}

// holds is 1 if an interval holds the truth, and 0 if not.
func holds(m estimate.Mean, truth float64) float64 {
	if m.Range.Low <= truth && truth <= m.Range.High {
		return 1
	}
	return 0
}

// TestChoosingBySuccessIsSeen chooses calls by what the episode did afterwards: the placebo then has a harm, and its interval says so.
func TestChoosingBySuccessIsSeen(t *testing.T) {
	t.Parallel()
	n, seen := repetitions(t, 40), 0
	for i := range n {
		harm, _ := world{Rand: rand.New(rand.NewPCG(83, uint64(i)))}.pairs(0.1, placebo, func(clean float64) bool { return clean == 1 })
		m := estimate.Harm(harm)
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
	versus := func(a, b *rand.Rand, p float64) estimate.Mean {
		left, _ := world{a, agents["gives up"]}.pairs(p, loud, always)
		right, _ := world{b, agents["retrier"]}.pairs(p, loud, always)
		return estimate.Versus(left, right)
	}
	n, held, truth := repetitions(t, 100), 0.0, 0.0
	for i := range 40 {
		truth += versus(rand.New(rand.NewPCG(84, uint64(i))), rand.New(rand.NewPCG(85, uint64(i))), 1).Value / 40
	}
	for i := range n {
		random := rand.New(rand.NewPCG(86, uint64(i)))
		held += holds(versus(random, random, 0.03), truth)
	}
	coverage := held / float64(n)
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
