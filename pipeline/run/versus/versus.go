// Package versus judges a candidate against a base: finished runs, or steps of both that it plays until a verdict is shown.
package versus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"trajgen/outputs/estimate"
	"trajgen/outputs/gate"
	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
)

// The metrics that can decide.
const (
	Success = "success"
	Reward  = "reward" // between 0 and 1
)

// Settings is a gate file: what is compared, and by what.
type Settings struct {
	Base      string   `yaml:"base" help:"run directory, or run file"`
	Candidate string   `yaml:"candidate" help:"run directory, of which nothing is played, or run file"`
	Out       string   `yaml:"out" help:"directory of the gate, where both are played"`
	Changes   []string `yaml:"changes" help:"keys and sections of the run file in which the two may differ"`
	Metric    string   `yaml:"metric" help:"success or reward"`

	gate.Question `yaml:",inline"`

	BudgetPlays int    `yaml:"budget_plays" help:"plays of both together, at most (default: what shows in most cases that nothing changed)"`
	Seed        uint64 `yaml:"seed" help:"seed of what is drawn, with the night"`
	Night       string `yaml:"night" help:"name of what is judged; another one draws anew (default: the name of out)"`
}

// Default are the settings of a gate of which nothing is said.
func Default() Settings {
	return Settings{Changes: []string{"model"}, Metric: Success, Question: gate.Usual}
}

// Validate says what is wrong with the settings.
func (s Settings) Validate() error {
	errs := []error{s.Question.Validate()}
	if s.Metric != Success && s.Metric != Reward {
		errs = append(errs, fmt.Errorf("metric is %q; %s or %s", s.Metric, Success, Reward))
	}
	if s.Base == "" || s.Candidate == "" {
		errs = append(errs, errors.New("base and candidate are both needed: what is compared, and with what"))
	}
	if s.BudgetPlays < 0 || s.BudgetPlays%2 != 0 {
		errs = append(errs, fmt.Errorf("budget_plays is %d; an even number, as each step plays both", s.BudgetPlays))
	}
	return errors.Join(errs...)
}

// Judge judges two finished runs, or else plays both until a verdict is shown; after an error the same call goes on. An error that is a
// Mistake says what to change. watch shows what is played, and w gets the warnings.
func (s Settings) Judge(ctx context.Context, watch check.Watch, w io.Writer) (*gate.Result, error) {
	if err := s.Validate(); err != nil {
		return nil, run.AsMistake(err)
	}
	if !isRun(s.Candidate) {
		return s.play(ctx, watch, w)
	}
	if !isRun(s.Base) {
		return nil, run.AsMistake(fmt.Errorf("candidate %s is a run directory and base %s is not: give two run directories, or a run file as candidate", s.Candidate, s.Base))
	}
	return s.finished(ctx)
}

// isRun reports whether a path is a run directory, and not a run file.
func isRun(path string) bool {
	_, err := os.Stat(filepath.Join(path, "run.json"))
	return err == nil
}

// broken is the result where the runs cannot be compared.
func (s Settings) broken(mode string, why error) *gate.Result {
	return &gate.Result{Verdict: gate.Broken, Reason: why.Error(), Mode: mode, Metric: s.Metric, Question: s.Question}
}

// damaged recognizes a journal whose episodes cannot all be read.
func damaged(err error) bool {
	_, is := errors.AsType[*journal.ErrDamaged](err)
	return is
}

// play is what an episode came to.
type play struct {
	id, task string
	value    estimate.Interval
	clipped  bool // the reward was not between 0 and 1
	failed   bool // the outcome is not the agent's doing
}

// playOf reads an episode. One whose outcome is not the agent's doing has no value, and neither has one that nothing judged.
func playOf(ep *episode.Episode, metric string) play {
	p := play{id: ep.ID, task: ep.Key.Task, value: gate.Unresolved, failed: !ep.Outcome.AgentsDoing()}
	value := 0.0
	switch {
	case p.failed, ep.Reward == nil && ep.Outcome != episode.Limit:
		return p
	case metric == Reward && ep.Reward != nil:
		value = *ep.Reward
	case ep.Outcome == episode.Success:
		value = 1
	}
	in := max(0, min(1, value))
	p.value, p.clipped = gate.Value(in), in != value
	return p
}

// eachPlay reads the plays of a run directory.
func (s Settings) eachPlay(ctx context.Context, dir string, each func(play)) (m run.Manifest, err error) {
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return m, err
		}
		if ep.Twin == nil {
			each(playOf(ep, s.Metric))
		}
	}
	return m, nil
}
