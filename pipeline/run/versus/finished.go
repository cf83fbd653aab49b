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
	"trajgen/pipeline/run"
)

// finished judges two finished runs, with one look at all of their plays.
func (s Settings) finished(ctx context.Context) (*gate.Result, error) {
	var arms [2]*played
	for i, dir := range []string{s.Base, s.Candidate} {
		var err error
		if arms[i], err = s.read(ctx, dir); damaged(err) {
			return s.broken(gate.Fixed, err), nil
		} else if err != nil {
			return nil, err
		}
	}
	base, candidate := arms[0], arms[1]
	if err := errors.Join(base.whole(), candidate.whole()); err != nil {
		return nil, run.AsMistake(err)
	}
	if err := s.identity(base.manifest, candidate.manifest); err != nil {
		return s.broken(gate.Fixed, err), nil
	}
	names := slices.Sorted(maps.Keys(base.plays))
	if !slices.Equal(names, slices.Sorted(maps.Keys(candidate.plays))) {
		return nil, run.AsMistake(fmt.Errorf("%s and %s played other tasks: play both with the same dataset and max_tasks", s.Base, s.Candidate))
	}
	if len(names) < 2 {
		return nil, run.AsMistake(errors.New("a gate needs two tasks at least"))
	}
	tasks := make([]gate.Paired, len(names))
	for i, name := range names {
		tasks[i] = gate.Paired{Base: base.plays[name], Candidate: candidate.plays[name]}
	}
	r := s.Look(s.Metric, tasks)
	r.Clipped, r.Base, r.Candidate = base.clipped+candidate.clipped, base.manifest.Fingerprint, candidate.manifest.Fingerprint
	return r, nil
}

// played is what a run directory says of its tasks.
type played struct {
	dir               string
	manifest          run.Manifest
	plays             map[string][]estimate.Interval
	episodes, clipped int
}

func (s Settings) read(ctx context.Context, dir string) (*played, error) {
	p := &played{dir: dir, plays: map[string][]estimate.Interval{}}
	var err error
	p.manifest, err = s.eachPlay(ctx, dir, func(one play) {
		task := strings.Clone(one.task)
		p.plays[task] = append(p.plays[task], one.value)
		p.episodes++
		if one.clipped {
			p.clipped++
		}
	})
	return p, err
}

// whole refuses a run that has not been played to its end, or tells nothing of how plays of a task differ.
func (p *played) whole() error {
	if planned := p.manifest.Tasks * p.manifest.Samples; p.episodes < planned {
		return fmt.Errorf("%s lacks %d of %d episodes: go on with trajgen run --resume --out %s", p.dir, planned-p.episodes, planned, p.dir)
	}
	for _, task := range slices.Sorted(maps.Keys(p.plays)) {
		if len(p.plays[task]) < 2 {
			return fmt.Errorf("%s has one play of %s: a gate needs two of each task, with --samples 2 or more", p.dir, task)
		}
	}
	return nil
}
