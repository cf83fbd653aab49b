// Package gate decides whether a candidate is worse than a base by more than a margin, with known rates of false verdicts whenever
// one looks and stops.
//
// It knows numbers alone. Each step plays one task, drawn with a known probability, with both arms. The evidence is the wealth of
// gamblers who bet on the next step by what the earlier ones showed (Waudby-Smith and Ramdas 2024): where a claim holds, their
// wealth grows beyond 1/α with a probability of at most α.
package gate

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"trajgen/outputs/estimate"
)

// Question is what a gate is to decide: whether the difference candidate − base is above −Margin.
type Question struct {
	Margin        float64 `yaml:"margin" json:"margin" help:"how much worse the candidate may be, as 0.03 for 3 points"`
	Alpha         float64 `yaml:"alpha" json:"alpha" help:"how often FAIL may be said of a candidate that is not worse by more than that"`
	Beta          float64 `yaml:"beta" json:"beta" help:"how often PASS may be said of one that is"`
	UnresolvedMax float64 `yaml:"unresolved_max" json:"unresolved_max" help:"share of plays without a value above which the answer is BROKEN"`
}

// Usual is what a gate asks if nothing else is said.
var Usual = Question{Margin: 0.03, Alpha: 0.05, Beta: 0.05, UnresolvedMax: 0.02}

// Validate says what is wrong with the question.
func (q Question) Validate() error {
	var errs []error
	if !(q.Margin > 0 && q.Margin <= 0.5) {
		errs = append(errs, fmt.Errorf("margin is %v; above 0 and at most 0.5, such as 0.03 for 3 points", q.Margin))
	}
	for _, rate := range []struct {
		name string
		is   float64
	}{{"alpha", q.Alpha}, {"beta", q.Beta}} {
		if !(rate.is > 0 && rate.is <= 0.5) {
			errs = append(errs, fmt.Errorf("%s is %v; above 0 and at most 0.5, such as 0.05", rate.name, rate.is))
		}
	}
	if !(q.UnresolvedMax >= 0 && q.UnresolvedMax <= 1) {
		errs = append(errs, fmt.Errorf("unresolved_max is %v; from 0 to 1", q.UnresolvedMax))
	}
	return errors.Join(errs...)
}

// Plan is what a gate plays: a function of the tasks, of what is known of them, and of a seed. It does not change while it plays.
type Plan struct {
	Question
	Metric string    `json:"metric"`
	Budget int       `json:"budget_plays"` // of both arms together, at most
	Seed   uint64    `json:"seed"`
	Night  string    `json:"night"`
	Tasks  []string  `json:"tasks"` // in the order of the dataset
	Q      []float64 `json:"q"`     // the probability with which a step draws each task
	W      float64   `json:"w"`     // the greatest weight 1/(tasks·q)
	V0     float64   `json:"v0"`    // the variance of a step that is expected

	upTo []float64 // sums of Q
}

// withoutHistory is the expected variance of a step while nothing is known of the tasks.
const withoutHistory = 0.2

// NewPlan weighs the tasks by what earlier plays of the base showed, in the same order: tasks that wobble are drawn more often.
// Without history all are drawn alike.
func NewPlan(q Question, seed uint64, night string, tasks []string, history []estimate.Cluster) *Plan {
	n := float64(len(tasks))
	p := &Plan{Question: q, Seed: seed, Night: night, Tasks: tasks, Q: make([]float64, len(tasks)), V0: withoutHistory}
	if history == nil {
		for i := range p.Q {
			p.Q[i] = 1 / n
		}
		return p.Begin()
	}
	variances, sum := estimate.Expected(history), 0.0
	for i, v := range variances {
		p.Q[i] = math.Sqrt(2*v + q.Margin) // the margin bounds the weights: any task may have broken
		sum += p.Q[i]
	}
	p.V0 = 0
	for i, v := range variances {
		p.Q[i] /= sum
		p.V0 += 2 * v / (n * n * p.Q[i])
	}
	return p.Begin()
}

// Asks reports whether two plans are of the same question about the same tasks, whatever is known of these.
func (p *Plan) Asks(other *Plan) bool {
	return p.Question == other.Question && p.Metric == other.Metric && p.Seed == other.Seed && p.Night == other.Night && slices.Equal(p.Tasks, other.Tasks)
}

// Begin makes a plan that was read from a file ready to draw.
func (p *Plan) Begin() *Plan {
	p.upTo, p.W = make([]float64, len(p.Q)), 0
	sum := 0.0
	for i, q := range p.Q {
		sum += q
		p.upTo[i], p.W = sum, max(p.W, p.weight(i))
	}
	return p
}

func (p *Plan) weight(task int) float64 { return 1 / (float64(len(p.Q)) * p.Q[task]) }

// Draw returns the task of a step, counted from 1.
func (p *Plan) Draw(step int) int {
	text := binary.LittleEndian.AppendUint64([]byte("gate"), p.Seed)
	text = append(binary.LittleEndian.AppendUint64(text, uint64(len(p.Night))), p.Night...)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(text, uint64(step)))
	u := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	i := sort.Search(len(p.upTo), func(i int) bool { return p.upTo[i] > u })
	return min(i, len(p.upTo)-1) // rounding may leave the last sum below u
}

// NightSeed is the seed of a night's episodes, so that nights are independent even where a server repeats itself for a seed.
func NightSeed(seed uint64, suite, night string) uint64 {
	text := append(binary.LittleEndian.AppendUint64(nil, seed), suite+night...)
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// Steps predicts how many steps it takes until a gap of the mean beyond the margin is shown at an error rate.
func (p *Plan) Steps(gap, rate float64) float64 {
	k := min(gap/(p.V0+gap*gap), stake/(p.W+p.Margin))
	return math.Log(1/rate) / (k*gap - k*k*(p.V0+gap*gap)/2)
}
