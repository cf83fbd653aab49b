// Package versus judges a candidate against a base.
package versus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/estimate"
	"trajgen/outputs/gate"
	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

// The metrics that can decide.
const (
	Success = "success"
	Reward  = "reward" // between 0 and 1
)

// Settings is a gate: what is compared, and by what.
type Settings struct {
	Base          string   `yaml:"base"`      // run directory
	Candidate     string   `yaml:"candidate"` // run directory
	Changes       []string `yaml:"changes"`   // keys and sections of the run file in which the two may differ
	Metric        string   `yaml:"metric"`
	gate.Question `yaml:",inline"`
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
	return errors.Join(errs...)
}

// Finished judges two finished runs, with one look at all of their plays. An error that is a Mistake says what the runs lack.
func (s Settings) Finished(ctx context.Context) (*gate.Result, error) {
	if err := s.Validate(); err != nil {
		return nil, run.AsMistake(err)
	}
	base, err := s.read(ctx, s.Base)
	if damaged(err) {
		return s.broken(err), nil
	}
	if err != nil {
		return nil, err
	}
	candidate, err := s.read(ctx, s.Candidate)
	if damaged(err) {
		return s.broken(err), nil
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(base.whole(), candidate.whole()); err != nil {
		return nil, run.AsMistake(err)
	}
	if err := s.identity(base.manifest, candidate.manifest); err != nil {
		return s.broken(err), nil
	}
	names := slices.Sorted(maps.Keys(base.plays))
	if !slices.Equal(names, slices.Sorted(maps.Keys(candidate.plays))) {
		return nil, run.AsMistake(fmt.Errorf("%s and %s played other tasks: play both with the same dataset and max_tasks", s.Base, s.Candidate))
	}
	if len(names) < 2 {
		return nil, run.AsMistake(errors.New("a single task says nothing of others: a gate needs two tasks at least"))
	}
	tasks := make([]gate.Paired, len(names))
	for i, name := range names {
		tasks[i] = gate.Paired{Base: base.plays[name], Candidate: candidate.plays[name]}
	}
	r := s.Look(s.Metric, tasks)
	r.Clipped = base.clipped + candidate.clipped
	return r, nil
}

// broken is the result where the runs cannot be compared.
func (s Settings) broken(why error) *gate.Result {
	return &gate.Result{Verdict: gate.Broken, Reason: why.Error(), Mode: gate.Fixed, Metric: s.Metric, Question: s.Question}
}

// damaged recognizes a journal whose episodes cannot all be read.
func damaged(err error) bool {
	_, is := errors.AsType[*journal.ErrDamaged](err)
	return is
}

// played is what a run directory says of its tasks.
type played struct {
	dir      string
	manifest run.Manifest
	plays    map[string][]estimate.Interval
	episodes int
	clipped  int // rewards
}

// read reads the plays of a run directory.
func (s Settings) read(ctx context.Context, dir string) (_ *played, err error) {
	p := &played{dir: dir, plays: map[string][]estimate.Interval{}}
	var reader *journal.Reader
	if p.manifest, reader, err = run.OpenFinished(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		if ep.Twin != nil {
			continue
		}
		value, clipped := valueOf(ep, s.Metric)
		if clipped {
			p.clipped++
		}
		task := strings.Clone(ep.Key.Task)
		p.plays[task] = append(p.plays[task], value)
		p.episodes++
	}
	return p, nil
}

// whole refuses a run that has not been played to its end, or tells nothing of how plays of a task differ.
func (p *played) whole() error {
	if planned := p.manifest.Tasks * p.manifest.Samples; p.episodes < planned {
		return fmt.Errorf("%s lacks %d of %d episodes: go on with trajgen run --resume --out %s", p.dir, planned-p.episodes, planned, p.dir)
	}
	for task, plays := range p.plays {
		if len(plays) < 2 {
			return fmt.Errorf("%s has one play of %s: a gate needs two of each task, with --samples 2 or more", p.dir, task)
		}
	}
	return nil
}

// valueOf is an episode's value. One whose outcome is not the agent's doing has none, and neither has one that nothing judged.
func valueOf(ep *episode.Episode, metric string) (_ estimate.Interval, clipped bool) {
	value := 0.0
	switch {
	case !ep.Outcome.AgentsDoing(), ep.Reward == nil && ep.Outcome != episode.Limit:
		return gate.Unresolved, false
	case metric == Reward && ep.Reward != nil:
		value = *ep.Reward
	case ep.Outcome == episode.Success:
		value = 1
	}
	in := max(0, min(1, value))
	return gate.Value(in), in != value
}
