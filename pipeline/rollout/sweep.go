package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Sweep spreads settings of the model over the samples of a task. Every combination of the values is one, and sample i
// gets combination i, beginning again after the last: a pure function of the episode's key, so that more samples change
// nothing for those that there are.
type Sweep struct {
	Models           []string
	ReasoningEfforts []string
	Temperatures     []float64
	TopPs            []float64
}

// Combinations is how many there are; 1 when nothing is varied.
func (s Sweep) Combinations() int {
	n := 1
	for _, values := range []int{len(s.Models), len(s.ReasoningEfforts), len(s.Temperatures), len(s.TopPs)} {
		if n *= max(values, 1); n > maxCombinations {
			return n
		}
	}
	return n
}

// maxCombinations is beyond what a run file can have meant.
const maxCombinations = 10_000

// At is how the model is asked for a sample: base with the sample's combination. Of the values in the order models,
// reasoning efforts, temperatures, top_ps the last ones change fastest.
func (s Sweep) At(base episode.Sampling, sample int) episode.Sampling {
	i := sample
	if n := len(s.TopPs); n > 0 {
		base.TopP, i = new(s.TopPs[i%n]), i/n
	}
	if n := len(s.Temperatures); n > 0 {
		base.Temperature, i = new(s.Temperatures[i%n]), i/n
	}
	if n := len(s.ReasoningEfforts); n > 0 {
		base.ReasoningEffort, i = s.ReasoningEfforts[i%n], i/n
	}
	if n := len(s.Models); n > 0 {
		base.Model = s.Models[i%n]
	}
	return base
}

// Validate reports everything that is wrong at once; samples is how many each task has.
func (s Sweep) Validate(samples int) error {
	var errs []error
	errs = append(errs,
		distinct("model", s.Models, func(v string) bool { return strings.TrimSpace(v) != "" }, "the name of a model"),
		distinct("reasoning_effort", s.ReasoningEfforts, func(v string) bool { return strings.TrimSpace(v) != "" }, "such as low, medium, high"),
		distinct("temperature", s.Temperatures, func(v float64) bool { return v >= 0 && v <= 5 }, "0 to 5"),
		distinct("top_p", s.TopPs, func(v float64) bool { return v >= 0 && v <= 1 }, "0 to 1"),
	)
	switch n := s.Combinations(); {
	case n > maxCombinations:
		errs = append(errs, fmt.Errorf("sweep: more than %d combinations", maxCombinations))
	case n > samples:
		errs = append(errs, fmt.Errorf("sweep: %d combinations (%s) and %d samples of each task: give at least --samples %d, so that each is played",
			n, s.product(), samples, n))
	}
	return errors.Join(errs...)
}

// product says how the combinations come about.
func (s Sweep) product() string {
	var parts []string
	for _, axis := range []struct {
		n    int
		name string
	}{{len(s.Models), "models"}, {len(s.ReasoningEfforts), "reasoning efforts"}, {len(s.Temperatures), "temperatures"}, {len(s.TopPs), "top_ps"}} {
		if axis.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", axis.n, axis.name))
		}
	}
	return strings.Join(parts, " × ")
}

func distinct[T cmp.Ordered](name string, values []T, good func(T) bool, want string) error {
	for _, v := range values {
		if !good(v) {
			return fmt.Errorf("sweep of %s: %v (want %s)", name, v, want)
		}
	}
	sorted := slices.Sorted(slices.Values(values))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return fmt.Errorf("sweep of %s: %v is there twice", name, sorted[i])
		}
	}
	return nil
}
