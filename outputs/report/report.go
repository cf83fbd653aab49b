// Package report adds episodes up: a Builder takes them in any order and makes a Report of outcomes, rewards with their
// intervals, tools, tokens, costs and times.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// Origin says what was played.
type Origin struct {
	Name         string `json:"name,omitempty"`  // of the run
	Where        string `json:"where,omitempty"` // the condition that chose the episodes
	Dataset      string `json:"dataset,omitempty"`
	Digest       string `json:"dataset_digest,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	Model        string `json:"model,omitempty"`       // as it was asked for; prices are looked up by the name that the server gave, then by this
	Seed         string `json:"seed,omitempty"`        // as the experiment has it; a merged run has several
	Fingerprint  string `json:"fingerprint,omitempty"` // of the experiment
	Version      string `json:"version,omitempty"`     // of the trajgen that played it
}

// Meta is what a report cannot learn from episodes.
type Meta struct {
	Origin
	TokenIDs bool // the servers were asked for token ids
	Planned  int  // episodes that the run calls for; 0 is not known
	// Wall is the time of the run, or of its last part; Played is how many episodes ended in it, 0 for all.
	Wall   time.Duration
	Played int
	Prices episode.Prices // by model
	Budget *Budget        // nil when the run had none
}

// Price is what a model costs.
type Price = episode.Price

// Report says what a run came to. Null stands for what is not known or not defined, never a zero.
type Report struct {
	Schema int `json:"schema"`
	Origin
	Span

	Episodes Episodes       `json:"episodes"`
	Outcomes []OutcomeCount `json:"outcomes"` // all of them, in their order
	Verdicts
	Tasks TaskSummary `json:"tasks"`

	Sweep []SweepGroup `json:"sweep"` // of the model's settings; empty when all episodes had the same
	Groups
	Calls
	Skills

	// Drift says how many episodes can be trained on by their token ids; null when none were asked for and no server gave any.
	Drift *DriftStats `json:"token_drift"`

	Turns Spread  `json:"turns"` // of an episode
	Stops []Count `json:"stops"`
	Spending
	Subagents *Subagents `json:"subagents,omitempty"` // null when no episode had any
	Time      Timing     `json:"time"`
	Mishaps
}

// Span is from when to when the episodes were played; null when none says so.
type Span struct {
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
}

// Verdicts are what the judged episodes came to.
type Verdicts struct {
	Reward      estimate.Estimate   `json:"reward"`
	SuccessRate estimate.Estimate   `json:"success_rate"`
	PassAtK     []estimate.PassRate `json:"pass_at_k"`
	PassHatK    []estimate.PassRate `json:"pass_hat_k"`
}

// Groups are episodes by what they have in common.
type Groups struct {
	Combinations []Group `json:"toolset_combinations"` // as drawn
	Toolsets     []Group `json:"toolsets"`             // an episode counts for each toolset that it had
	Tags         []Group `json:"tags"`                 // an episode counts for each tag of its task
	Difficulties []Group `json:"difficulties"`
}

// Calls are those of tools.
type Calls struct {
	Tools        []ToolStats `json:"tools"`
	UnknownTools []Count     `json:"unknown_tools"` // names that models called and that do not exist
	Web          *Replays    `json:"web_replay,omitempty"`
	Twin         *Replays    `json:"twin_replay,omitempty"`
}

// Replays are calls that a recording, of the web or of tools, was to answer.
type Replays struct {
	Calls    int     `json:"calls"`
	Missed   int     `json:"missed"` // the recording lacked something
	HitShare float64 `json:"hit_share"`
}

// Spending is what models used, and what that cost.
type Spending struct {
	Usage TokenUsage `json:"tokens"`
	Cost  Cost       `json:"cost"`
	// Budget is null when the run had none.
	Budget *Budget `json:"budget"`
	// What models other than the agent's used is neither in Usage nor in Cost.
	User     OtherUsage `json:"user_tokens"`
	Approver OtherUsage `json:"approver_tokens"`
}

// Mishaps are the faults of a run.
type Mishaps struct {
	Faults          []FaultCount `json:"faults"`           // what episodes ended in
	ModelRetries    []FaultCount `json:"model_retries"`    // requests that were sent again
	EarlierAttempts []FaultCount `json:"earlier_attempts"` // plays that were played again
}

// Episodes counts them.
type Episodes struct {
	Planned *int `json:"planned"`
	Present int  `json:"present"`
	Missing *int `json:"missing"` // planned and not present
	Tasks   int  `json:"tasks"`   // different ones among the present
	Judged  int  `json:"judged"`  // those with a reward
	// Unjudged are the agent's doing and have no reward: the task has no check. They are in no rate.
	Unjudged int `json:"unjudged"`
	// Errors are not the agent's doing.
	Errors int `json:"errors"`
	// Twins are counted here alone, and in what was spent and how long it took.
	Twins Twins `json:"twins,omitzero"`
}

// Twins counts episodes that are twins of others.
type Twins struct {
	Played       int   `json:"played"`
	Diverged     int   `json:"diverged"`      // could not follow their clean episode
	Errors       int   `json:"errors"`        // ended in another error, which is not the agent's doing
	PrefixTokens int64 `json:"prefix_tokens"` // that clean episodes had paid for and twins did not
}

// OutcomeCount is how often episodes ended in an outcome.
type OutcomeCount struct {
	Outcome episode.Outcome `json:"outcome"`
	Count   int             `json:"count"`
}

// Count is how often something was seen.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Group is the episodes that have something in common.
type Group struct {
	Name     string            `json:"name"`
	Episodes int               `json:"episodes"` // with any outcome
	Reward   estimate.Estimate `json:"reward"`   // of the judged ones
}

// SweepGroup is the episodes that were played with the same settings of the model.
type SweepGroup struct {
	Name        string            `json:"name"` // what tells them from the others, such as "temperature=0.7"
	Sampling    episode.Sampling  `json:"sampling"`
	Episodes    int               `json:"episodes"` // with any outcome
	Outcomes    []OutcomeCount    `json:"outcomes"` // in their order, without zeros
	SuccessRate estimate.Estimate `json:"success_rate"`
	Reward      estimate.Estimate `json:"reward"`
}

// ToolStats is what became of the calls of a tool.
type ToolStats struct {
	Tool         string   `json:"tool"`
	Calls        int      `json:"calls"`
	Statuses     []Count  `json:"statuses"` // in the order of episode's constants, without zeros
	ErrorClasses []Count  `json:"error_classes"`
	Repaired     int      `json:"repaired"`      // arguments that were no valid JSON and were mended
	Coerced      int      `json:"coerced"`       // calls with an argument or a name that was read otherwise than written
	Stored       int      `json:"stored"`        // results that were too long and lie whole in the sandbox
	Masked       int      `json:"masked"`        // results in which a secret was replaced
	Shared       int      `json:"shared"`        // calls that did not run, as an identical one of the turn had
	Refused      int      `json:"refused"`       // commands that the policy refused or an approver denied
	Approved     int      `json:"approved"`      // commands that needed approval and got it
	Nonzero      int      `json:"nonzero_exits"` // commands and scripts whose exit code was not 0: a script's call has failed, a command's has not
	Elapsed      Duration `json:"elapsed"`
	Sandbox      Duration `json:"sandbox"` // part of it that was spent in the sandbox
}

// DriftStats counts episodes by what a comparison of their token ids came to.
type DriftStats struct {
	Verdicts []Count `json:"verdicts"` // of all episodes, in the order of episode.DriftVerdicts
	// Safe have no drift and an outcome that is the agent's doing, as Of have: what else ended cannot be trained on.
	Safe         int      `json:"safe"`
	Of           int      `json:"of"`
	SafeShare    *float64 `json:"safe_share"`
	WithLogprobs int      `json:"with_logprobs"` // safe ones with a log probability of every sampled token
}

// Duration is a distribution of times: nearest-rank quantiles. They are exact up to 10,000 values and come from a fixed
// pseudo-random choice of so many beyond that.
type Duration struct {
	P50US   *int64 `json:"p50_us"`
	P95US   *int64 `json:"p95_us"`
	Sampled bool   `json:"sampled,omitempty"`
}

// Spread is a distribution of counts, with nearest-rank quantiles.
type Spread struct {
	Mean *float64 `json:"mean"`
	P50  *int     `json:"p50"`
	P95  *int     `json:"p95"`
	Max  *int     `json:"max"`
}

// Tokens sums what servers reported.
type Tokens struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
	Reasoning  int64 `json:"reasoning"` // part of Completion
	Cached     int64 `json:"cached"`    // part of Prompt
}

// TokenUsage is that of turns. Attempts that were played again are not in it.
type TokenUsage struct {
	Tokens
	Turns int `json:"turns"`
	// Unreported turns have no usage; their tokens are missing in the sums.
	Unreported int `json:"unreported_turns"`
}

// OtherUsage is that of a model that is not the agent's.
type OtherUsage struct {
	Tokens
	Episodes int `json:"episodes"` // in which it was asked
	// Unreported episodes have no usage, or not that of every question; their tokens are missing in the sums.
	Unreported int `json:"unreported_episodes"`
}

// Cost is what the turns cost, and the summaries of what turns were not sent, which count as turns here.
type Cost struct {
	USD *float64 `json:"usd"` // null when the usage or the price of any turn is not known
	// KnownUSD is the part that is known, a lower bound; null when nothing is.
	KnownUSD     *float64    `json:"known_usd"`
	UnknownTurns int         `json:"unknown_turns"`
	Models       []ModelCost `json:"models"`

	Outcomes   []OutcomeCost `json:"outcomes"`
	PerEpisode *float64      `json:"usd_per_episode"` // null when USD is

	Earlier EarlierCost `json:"earlier_attempts"` // no part of what is above
}

// EarlierCost is what went into attempts that were followed by others.
type EarlierCost struct {
	Attempts   int     `json:"attempts"`
	Turns      int     `json:"turns"`
	Prompt     int64   `json:"prompt"`
	Completion int64   `json:"completion"`
	KnownUSD   float64 `json:"known_usd"`
	Unknown    int     `json:"unknown"` // attempts with turns whose cost is not known
}

// ModelCost is the part of one model, under the name that its price has or the server gave.
type ModelCost struct {
	Model string     `json:"model"`
	Price *Price     `json:"price"` // null when it is not known
	Usage TokenUsage `json:"tokens"`
	USD   *float64   `json:"usd"` // of the turns whose usage is known; null without a price
}

// Timing is how long it took.
type Timing struct {
	WallUS     *int64   `json:"wall_us"`
	PerSecond  *float64 `json:"episodes_per_second"`
	Episode    Duration `json:"episode"`     // elapsed, of an episode
	ModelShare *float64 `json:"model_share"` // of the episodes' time, waiting for the model
	ToolShare  *float64 `json:"tool_share"`  // of the episodes' time, waiting for tools
}

// FaultCount is how often a fault was seen.
type FaultCount struct {
	Outcome episode.Outcome `json:"outcome"`
	Class   string          `json:"class"`
	Count   int             `json:"count"`
	Example string          `json:"example"`            // message of the first in dataset order, cut to 500 characters
	ID      string          `json:"id"`                 // the episode of the example
	PauseUS int64           `json:"pause_us,omitempty"` // before model calls were tried again, together
}

// WriteJSON writes the report as one indented JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
