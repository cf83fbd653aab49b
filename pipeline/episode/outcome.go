package episode

import "time"

// Outcome is how an episode ended: one of a closed set.
type Outcome string

// The outcomes. The first three are the agent's doing and may carry a reward; the others are not, and their reward
// is null.
const (
	Success       Outcome = "success"
	Failure       Outcome = "failure"
	Limit         Outcome = "limit"
	ModelError    Outcome = "model_error"
	ToolError     Outcome = "tool_error"
	SandboxError  Outcome = "sandbox_error"
	VerifierError Outcome = "verifier_error"
	Cancelled     Outcome = "cancelled"
)

// Outcomes lists the closed set in the order in which reports show it.
func Outcomes() []Outcome {
	return []Outcome{Success, Failure, Limit, ModelError, ToolError, SandboxError, VerifierError, Cancelled}
}

// SuccessAt is the reward from which an episode counts as a success: a weighted sum may fall short of 1 by rounding.
const SuccessAt = 1 - 1e-9

// AgentsDoing reports whether the outcome says something about the agent, and not about the run.
func (o Outcome) AgentsDoing() bool { return o == Success || o == Failure || o == Limit }

// Stop is why the agent stopped.
type Stop string

// The reasons to stop.
const (
	StopAnswered  Stop = "answered"
	StopMaxTurns  Stop = "max_turns"
	StopMaxTokens Stop = "max_tokens" // the episode's token limit
	StopMaxCost   Stop = "max_cost"   // the episode's limit of money
	StopLength    Stop = "length"     // the model's reply was cut at its own limit
	StopEmpty     Stop = "empty"      // the model's reply was empty, after all retries
	StopTimeout   Stop = "timeout"
	StopContext   Stop = "context_overflow" // the messages no longer fit the model's window
	StopRepeating Stop = "repeating"        // the guardrails found repeated calls without progress
	StopFault     Stop = "fault"
)

// Fault is an event that was not the agent's doing.
type Fault struct {
	Outcome Outcome `json:"outcome"` // which boundary it crossed
	Class   string  `json:"class"`   // e.g. rate_limit, connection, timeout, open, setup, exit_126
	Message string  `json:"message"`
	// Pause is how long a model call waited before it was tried again.
	Pause time.Duration `json:"pause,omitempty"`
}
