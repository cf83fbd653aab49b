package episode

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
