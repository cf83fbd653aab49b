package gate

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	stake = 0.9 // of what a gambler has, at most
	prior = 20  // steps that the expected variance counts for
)

// bets are a panel of gamblers against a claim about the mean of the steps' values. Each believes in a gap of its own between the mean
// and the claim. The stake for a step depends on earlier steps alone.
type bets struct {
	claim  float64
	side   float64   // 1: the claim is that the mean is at least so great; −1: that it is at most so great
	most   float64   // stake that keeps a gambler solvent whatever comes
	gaps   []float64 // what each believes
	wealth []float64 // the logarithm, of each
	v0     float64

	n, mean, squares float64
}

func newBets(claim, side, most, v0 float64, gaps ...float64) *bets {
	return &bets{claim: claim, side: side, most: most, gaps: gaps, wealth: make([]float64, len(gaps)), v0: v0}
}

// add goes on with the value of a step.
func (b *bets) add(z float64) {
	variance := (prior*b.v0 + b.squares) / (prior + b.n)
	for i, gap := range b.gaps {
		k := min(gap/(variance+gap*gap), b.most)
		b.wealth[i] += math.Log1p(k * b.side * (b.claim - z))
	}
	b.n++
	d := z - b.mean
	b.mean += d / b.n
	b.squares += d * (z - b.mean)
}

// log is the logarithm of the panel's mean wealth.
func (b *bets) log() float64 {
	most, sum := b.wealth[0], 0.0
	for _, w := range b.wealth[1:] {
		most = max(most, w)
	}
	for _, w := range b.wealth {
		sum += math.Exp(w - most)
	}
	return most + math.Log(sum/float64(len(b.wealth)))
}

// clone is for the same bets on other steps to come.
func (b *bets) clone() *bets {
	other := *b
	other.wealth = append([]float64(nil), b.wealth...)
	return &other
}

// refuted reports whether the bets on all these values ever reach a wealth whose logarithm is this.
func (b *bets) refuted(values []float64, log float64) bool {
	for _, z := range values {
		if b.add(z); b.log() >= log {
			return true
		}
	}
	return false
}

// quantile is of the normal distribution.
func quantile(p float64) float64 { return mathext.NormalQuantile(p) }
