package versus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"trajgen/outputs/estimate"
	"trajgen/outputs/gate"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
)

// Files of a gate's directory, beside the run directories base and candidate.
const (
	planFile = "plan.json"
	gateFile = "gate.json"
)

// play goes on with the gate in Out, which may be new.
func (s Settings) play(ctx context.Context, watch check.Watch, w io.Writer) (_ *gate.Result, err error) {
	if s.Out == "" {
		return nil, run.AsMistake(errors.New("out is not given: a gate that plays needs a directory"))
	}
	if s.Night == "" {
		s.Night = filepath.Base(filepath.Clean(s.Out))
	}
	base, candidate, err := s.open(ctx, watch, w)
	for _, a := range []*arm{base, candidate} {
		if a != nil {
			defer func() { err = errors.Join(err, a.run.Close()) }()
		}
	}
	if unsound, is := errors.AsType[unproven](err); is {
		return s.broken(gate.Sequential, unsound), nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.identity(base.run.Manifest, candidate.run.Manifest); err != nil {
		return s.broken(gate.Sequential, err), nil
	}
	plan, err := s.plan(ctx, base, candidate)
	if err != nil {
		return nil, err
	}
	n, err := s.begun(ctx, plan, base, candidate)
	if damaged(err) {
		return s.broken(gate.Sequential, err), nil
	}
	if err != nil {
		return nil, err
	}
	err = n.play(ctx, watch)
	if _, broke := errors.AsType[*budget.Reached](err); broke {
		return nil, fmt.Errorf("%w; with a higher one in the run file the same command goes on", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the same command goes on", err)
	}
	r := n.result()
	return r, keep(filepath.Join(s.Out, gateFile), r)
}

// unproven is a task whose verifier fails its proof: no play of it could be trusted.
type unproven struct{ error }

// open opens both arms. It returns those that it opened with an error, too.
func (s Settings) open(ctx context.Context, watch check.Watch, w io.Writer) (base, candidate *arm, err error) {
	if base, err = s.arm(ctx, s.Base, "base", watch, w); err == nil {
		candidate, err = s.arm(ctx, s.Candidate, "candidate", watch, w)
	}
	return base, candidate, err
}

// arm opens a run file, or that of a run directory, to be played in a run directory of the gate.
func (s Settings) arm(ctx context.Context, path, name string, watch check.Watch, w io.Writer) (*arm, error) {
	file, err := s.file(path)
	if err == nil && (file.Faults.Twins || file.Sweep.Varied().Combinations() > 1) {
		err = errors.New("a gate plays neither twins nor sweeps: leave faults.twins and sweep out")
	}
	if err == nil {
		file.Out, file.Seed, file.Samples, file.Stepped = filepath.Join(s.Out, name), gate.NightSeed(s.Seed, "", s.Night), 1, true
		file.Play.RetryErrors = file.Play.RetryErrors && isRun(file.Out)
		if file.Play.Preflight != run.PreflightOff {
			file.Play.Preflight = run.PreflightMust
		}
		err = file.Validate()
	}
	if err != nil {
		return nil, run.AsMistake(fmt.Errorf("%s: %w", name, err))
	}
	opened, err := run.Open(ctx, file, isRun(file.Out), w, func(e *run.Experiment) error {
		err := check.Preflight(ctx, file, e, w, watch)
		if _, is := errors.AsType[run.Mistake](err); is {
			return unproven{err}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := &arm{run: opened, plays: map[string]play{}}
	for task, err := range opened.Exp.Playable(opened.Exp.Source.Tasks(ctx)) {
		if err != nil {
			return a, err
		}
		a.tasks = append(a.tasks, task)
	}
	return a, nil
}

// file is the run file of an arm.
func (s Settings) file(path string) (run.File, error) {
	if isRun(path) {
		return run.Resumed(path)
	}
	file := run.Default()
	return file, run.Decode(path, "a run file", &file)
}

// plan makes the plan, or reads that of the directory, which must be of the same question.
func (s Settings) plan(ctx context.Context, base, candidate *arm) (*gate.Plan, error) {
	names := base.names()
	if len(names) < 2 || !slices.Equal(names, candidate.names()) {
		return nil, run.AsMistake(fmt.Errorf("base plays %d tasks and candidate %d: a gate needs the same ones in the same order, two at least", len(base.tasks), len(candidate.tasks)))
	}
	plan, err := s.weighed(ctx, names)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.Out, planFile)
	was, err := readPlan(path)
	if errors.Is(err, fs.ErrNotExist) {
		return plan, keep(path, plan)
	}
	if err != nil {
		return nil, err
	}
	if !plan.Asks(was) {
		return nil, run.AsMistake(fmt.Errorf("%s holds a gate with another question, seed, budget or tasks: change them back, or give another out", s.Out))
	}
	return was, nil
}

func (a *arm) names() (all []string) {
	for _, task := range a.tasks {
		all = append(all, task.ID)
	}
	return all
}

// begun is a night that has judged what the journals hold. What ended in an error is evidence against either verdict, if it is not
// played again.
func (s Settings) begun(ctx context.Context, plan *gate.Plan, base, candidate *arm) (*night, error) {
	n := newNight(plan, base, candidate)
	for i, dir := range []string{"base", "candidate"} {
		m, err := s.eachPlay(ctx, filepath.Join(s.Out, dir), func(p play) { n.arms[i].plays[p.id] = p })
		if err != nil {
			return nil, err
		}
		n.arms[i].fingerprint = m.Fingerprint
	}
	if n.judge(); n.decided || !base.again() && !candidate.again() {
		return n, nil
	}
	for _, a := range n.arms {
		if a.again() {
			maps.DeleteFunc(a.plays, func(_ string, p play) bool { return p.failed })
		}
	}
	n.walk, n.clipped = plan.Walk(), 0
	n.judge()
	return n, nil
}

// weighed is a plan by what the base's run directory shows, if it is one. These plays are no evidence.
func (s Settings) weighed(ctx context.Context, tasks []string) (*gate.Plan, error) {
	var history []estimate.Cluster
	if isRun(s.Base) {
		of := map[string]int{}
		for i, id := range tasks {
			of[id] = i
		}
		history = make([]estimate.Cluster, len(tasks))
		if _, err := s.eachPlay(ctx, s.Base, func(p play) {
			if i, ok := of[p.task]; ok && p.value != gate.Unresolved {
				history[i].Add(p.value.Low)
			}
		}); err != nil {
			return nil, err
		}
	}
	plan := gate.NewPlan(s.Question, gate.NightSeed(s.Seed, "", s.Night), s.Night, tasks, history)
	plan.Metric, plan.Budget = s.Metric, s.BudgetPlays
	if plan.Budget == 0 {
		plan.Budget = 2 * int(math.Ceil(2.5*plan.Steps(s.Margin, s.Beta)))
	}
	return plan, nil
}

func readPlan(path string) (*gate.Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var plan gate.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return plan.Begin(), nil
}

func encode(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

// keep writes a file whole. One that says the same stays.
func keep(path string, v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return disk.WriteFile(disk.Real{}, path, disk.Bytes(text))
}
