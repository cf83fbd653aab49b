package episode

import (
	"maps"
	"slices"
)

// Proof is what scripted agents scored at a task before any model played it, under the conditions of the run: the same checks,
// image, network and limits. It says what a reward of the task is worth.
type Proof struct {
	Digest string `json:"digest"` // of the task and the conditions, SHA-256 in hex
	// Gold and Noop are the rewards of the task's reference solution and of doing nothing; nil without a reward.
	Gold *float64 `json:"gold"`
	Noop *float64 `json:"noop"`
	// Faults are the classes of the verifier's own faults where it judged gold or noop, which have no reward then.
	Faults map[string]string `json:"faults,omitempty"`
	// Attacks are the rewards of agents that try to cheat the verifier, by attack; nil where none was tried.
	Attacks map[string]*float64 `json:"attacks,omitempty"`
}

// Passed are the attacks that had the reward of a success, sorted.
func (p *Proof) Passed() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Attacks)) {
		if succeeds(p.Attacks[name]) {
			names = append(names, name)
		}
	}
	return names
}

// Unsound says why a reward of the task teaches little, in the same words for all tasks of a kind; "" when nothing is known against it.
func (p *Proof) Unsound() string {
	switch {
	case p == nil:
		return ""
	case p.Faults["gold"] != "" || p.Gold != nil && !succeeds(p.Gold):
		return "the task's reference solution fails"
	case succeeds(p.Noop):
		return "doing nothing passes the task's verifier"
	case len(p.Passed()) > 0:
		return "an attack passes the task's verifier"
	}
	return ""
}

func succeeds(reward *float64) bool { return reward != nil && *reward >= SuccessAt }
