package estimate

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Stake is what an unreliable tool costs an episode: calls per episode × chance of an error × harm of one.
type Stake struct {
	Calls        []float64 // per episode, one number for each task
	Errors, Of   int       // how many of so many real calls failed
	Harm         Mean
	Draws        int
	Seed, Stream uint64
}

// Estimate is the product and the 95 % interval of its draws: the chance from a beta distribution (Jeffreys), the harm from a normal one, the
// calls from tasks drawn with replacement.
func (s Stake) Estimate() (value float64, interval Interval) {
	if len(s.Calls) == 0 || s.Of == 0 {
		return 0, Interval{}
	}
	calls, _ := moments(s.Calls)
	value = calls * float64(s.Errors) / float64(s.Of) * s.Harm.Value
	random := rand.New(rand.NewPCG(s.Seed, s.Stream))
	chance := func() float64 {
		return mathext.InvRegIncBeta(float64(s.Errors)+0.5, float64(s.Of-s.Errors)+0.5, random.Float64())
	}
	drawn := make([]float64, s.Draws)
	for i := range drawn {
		calls := 0.0
		for range s.Calls {
			calls += s.Calls[random.IntN(len(s.Calls))] / float64(len(s.Calls))
		}
		drawn[i] = calls * chance() * (s.Harm.Value + s.Harm.SE*random.NormFloat64())
	}
	slices.Sort(drawn)
	at := func(q float64) float64 { return drawn[min(len(drawn)-1, int(q*float64(len(drawn))))] }
	return value, Interval{min(value, at(0.025)), max(value, at(0.975))}
}
