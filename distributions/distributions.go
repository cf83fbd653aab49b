// Package distributions says which toolsets an episode may use, with what probability.
package distributions

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Distribution gives each toolset its chance of being in an episode. The chances are independent of each other.
type Distribution struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Toolsets    []Share `json:"toolsets"` // in declaration order, which is the order of the draws
}

// Share is the chance of one toolset.
type Share struct {
	Toolset string  `json:"toolset"`
	Percent float64 `json:"percent"` // above 0, at most 100
}

// Draw is the set of toolsets that one episode got.
type Draw struct {
	Toolsets []string `json:"toolsets"` // sorted
	LogP     float64  `json:"log_p"`    // natural logarithm of the probability of exactly this set
}

// Sample draws a set. It is never empty: where every toolset missed, the one with the highest percentage (the first of
// them on a tie) is taken. Exactly one number is consumed from r for each toolset, so that what follows on the same
// stream does not depend on what was drawn.
func (d Distribution) Sample(r *rand.Rand) Draw {
	drawn := make([]string, 0, len(d.Toolsets))
	for _, share := range d.Toolsets {
		if r.Float64()*100 < share.Percent {
			drawn = append(drawn, share.Toolset)
		}
	}
	if fallback, ok := d.fallback(); ok && len(drawn) == 0 {
		drawn = append(drawn, fallback)
	}
	slices.Sort(drawn)
	return Draw{Toolsets: drawn, LogP: d.LogP(drawn)}
}

// LogP is the natural logarithm of the probability that Sample gives exactly this set, in any order. It is -Inf for a
// set that Sample never gives.
func (d Distribution) LogP(set []string) float64 {
	for _, toolset := range set {
		if !d.has(toolset) {
			return math.Inf(-1)
		}
	}
	fallback, ok := d.fallback()
	if ok && len(set) == 0 {
		return math.Inf(-1) // the fallback takes its place
	}
	logP := d.logDirect(set)
	if ok && !slices.ContainsFunc(set, func(toolset string) bool { return toolset != fallback }) {
		logP = logAdd(logP, d.logDirect(nil))
	}
	return logP
}

// logDirect is the logarithm of the probability that the draws alone, without the fallback, give the set.
func (d Distribution) logDirect(set []string) float64 {
	sum := 0.0
	for _, share := range d.Toolsets {
		if slices.Contains(set, share.Toolset) {
			sum += math.Log(share.Percent / 100)
		} else {
			sum += math.Log1p(-share.Percent / 100)
		}
	}
	return sum
}

// fallback is the toolset that an otherwise empty draw gets; there is none in a distribution without toolsets.
func (d Distribution) fallback() (string, bool) {
	if len(d.Toolsets) == 0 {
		return "", false
	}
	best := d.Toolsets[0]
	for _, share := range d.Toolsets[1:] {
		if share.Percent > best.Percent {
			best = share
		}
	}
	return best.Toolset, true
}

func (d Distribution) has(toolset string) bool {
	return slices.ContainsFunc(d.Toolsets, func(share Share) bool { return share.Toolset == toolset })
}

// logAdd is log(exp(a) + exp(b)) without leaving the logarithms.
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
