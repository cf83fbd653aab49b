package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// Limits are the limits of an episode, as in the run file.
type Limits struct {
	Turns  int           `yaml:"turns" flag:"max-turns" experiment:"always" help:"model calls of an episode, at most"`
	Tokens int           `yaml:"tokens" flag:"episode-tokens" experiment:"always" help:"prompt and completion tokens of an episode, at most (default: no limit)"`
	Time   time.Duration `yaml:"time" flag:"episode-timeout" experiment:"always" help:"wall time of an episode's model and tool calls, at most"`
	USD    float64       `yaml:"usd,omitempty" flag:"episode-usd" experiment:"given" help:"most that an episode's turns may cost (default: no limit)"`
}

// Validate says what is wrong with the section.
func (l Limits) Validate() error {
	var errs []error
	if l.Turns == 0 {
		errs = append(errs, errors.New("limits.turns (--max-turns) is 0; at least 1"))
	}
	if l.Time == 0 {
		errs = append(errs, errors.New("limits.time (--episode-timeout) is 0; over 0"))
	}
	return errors.Join(errs...)
}

// ContextSettings say how a conversation is kept within the model's window, as in the run file.
type ContextSettings struct {
	ContextWindow    int     `yaml:"window,omitempty" flag:"context-window" experiment:"given" help:"tokens that a prompt and its reply may have together (default: what the server says)"`
	Compaction       string  `yaml:"compaction,omitempty" experiment:"given" help:"what is done when a conversation nears the window's end: stop (the episode ends at its limit; default), drop (the oldest tool results) or summarize"`
	CompactAt        float64 `yaml:"compact_at,omitempty" experiment:"given" help:"share of the window at which a conversation is shortened (default 0.8)"`
	CompactTo        float64 `yaml:"compact_to,omitempty" experiment:"given" help:"share of the window to which it is shortened, about (default 0.5)"`
	SummaryModel     string  `yaml:"summary_model,omitempty" experiment:"given" help:"model that writes the summaries of compaction summarize (default: the agent's own)"`
	SummaryBaseURL   string  `yaml:"summary_base_url,omitempty" experiment:"no" help:"endpoint of the summary model (default: base_url)"`
	SummaryAPIKeyEnv string  `yaml:"summary_api_key_env,omitempty" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
}

// The defaults of CompactAt and CompactTo.
const (
	DefaultCompactAt = 0.8
	DefaultCompactTo = 0.5
)

// Variables are the variables whose values are keys.
func (c ContextSettings) Variables() []string { return []string{c.SummaryAPIKeyEnv} }

// Validate says what is wrong with the section.
func (c ContextSettings) Validate() error {
	var errs []error
	strategies := []string{"", episode.CompactStop, episode.CompactDrop, episode.CompactSummarize}
	if !slices.Contains(strategies, c.Compaction) {
		errs = append(errs, fmt.Errorf("compaction is %q; one of stop, drop, summarize", c.Compaction))
	}
	at, to := cmp.Or(c.CompactAt, DefaultCompactAt), cmp.Or(c.CompactTo, DefaultCompactTo)
	if !(to > 0 && to < at && at <= 1) {
		errs = append(errs, fmt.Errorf("compact_at is %v and compact_to %v; over 0 to 1, and compact_to the smaller one", at, to))
	}
	if c.SummaryModel == "" && (c.SummaryBaseURL != "" || c.SummaryAPIKeyEnv != "") {
		errs = append(errs, errors.New("summary_base_url and summary_api_key_env say where the summary model is: give --summary-model NAME too"))
	}
	if c.SummaryModel != "" && c.Compaction != episode.CompactSummarize {
		errs = append(errs, errors.New("summary_model is for compaction summarize"))
	}
	return errors.Join(errs...)
}
