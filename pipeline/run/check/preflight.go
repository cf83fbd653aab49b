package check

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/proof"
	"trajgen/tools/twin"
)

// patience is how long a preflight may take before it speaks of itself.
const patience = 2 * time.Second

// Preflight proves the tasks of a run before its first token: those with a reference solution and a verifier that were not proven under
// its conditions. The error of a run that must not begin is a Mistake that names the tasks; otherwise w gets a warning. A run without
// a model pays for no token, and one whose tools a recording answers plays in no sandbox of its own: these are not proven.
func Preflight(ctx context.Context, file run.File, e *run.Experiment, w io.Writer, watch Watch) error {
	if file.Play.Preflight == run.PreflightOff || file.Scripted.Policy != "" || file.Twin.Mode == twin.Replay || e.Played || e.Provable == 0 {
		return nil
	}
	known, err := survey(ctx, e, nil)
	if err == nil && known.lacking > 0 {
		known, err = proveLacking(ctx, file, e, known.lacking, w, watch)
	}
	if err != nil {
		return fmt.Errorf("preflight: %w (--preflight off leaves it out)", err)
	}
	return known.verdict(e.Provable, file.Play.Preflight == run.PreflightMust, w)
}

// proveLacking proves the tasks that lack it, and says how all stand then.
func proveLacking(ctx context.Context, file run.File, e *run.Experiment, lacking int, w io.Writer, watch Watch) (standing, error) {
	slow := time.AfterFunc(patience, func() {
		fmt.Fprintf(w, "preflight: proving %d of %d tasks that have a reference solution, before the first token (--preflight off leaves it out)\n", lacking, e.Provable)
	})
	defer slow.Stop()
	provable, err := Provable(file)
	if err != nil {
		return standing{}, err
	}
	// A reference solution waits for no model: as many as a run may have episodes would only wait for the processors.
	provable.Play.Workers = min(provable.Play.Workers, 2*runtime.NumCPU())
	found, err := prove(ctx, provable, nil, io.Discard, watch, &choice{lacking, file.Play.Proofs()})
	if err != nil {
		return standing{}, err
	}
	return survey(ctx, e, found.Problems)
}

// choice is of tasks that lack a proof.
type choice struct {
	tasks int // how many there are
	store proof.Store
}

// takes says whether a task is chosen; nil chooses all.
func (c *choice) takes(task *episode.Task, digest string) (bool, error) {
	if c == nil {
		return true, nil
	}
	if !provable(task) {
		return false, nil
	}
	known, err := c.store.Get(digest)
	return lacking(known), err
}

// provable says whether a task has what a proof needs.
func provable(task *episode.Task) bool { return len(task.Gold) > 0 && len(task.Verify) > 0 }

// lacking says whether a verdict on the reference solution or on doing nothing is not known.
func lacking(p *episode.Proof) bool {
	return p == nil || p.Gold == nil && p.Faults["gold"] == "" || p.Noop == nil && p.Faults["noop"] == ""
}

// standing is how a run's tasks stand.
type standing struct {
	lacking int      // tasks without a proof
	failing []string // those that fail it, or lack it, and why
}

// verdict warns of tasks that fail, or refuses a run that must have none.
func (s standing) verdict(of int, must bool, w io.Writer) error {
	if len(s.failing) == 0 {
		return nil
	}
	text := fmt.Sprintf("preflight: %d of %d tasks with a reference solution fail their proof, or have none (trajgen check says more)", len(s.failing), of)
	if must {
		return run.AsMistake(fmt.Errorf("%s:\n  %s", text, strings.Join(s.failing, "\n  ")))
	}
	const most = 5
	shown := s.failing[:min(most, len(s.failing))]
	if len(shown) < len(s.failing) {
		shown = append(slices.Clone(shown), "...")
	}
	fmt.Fprintf(w, "%s; their rows say so, and exports that rewards are learned from leave out those that fail:\n  %s\n", text, strings.Join(shown, "\n  "))
	return nil
}

// survey looks the tasks up; found is what was just found of them.
func survey(ctx context.Context, e *run.Experiment, found []Problem) (s standing, err error) {
	store, details := e.File.Play.Proofs(), map[string]string{}
	for _, problem := range found {
		details[problem.Task] = ": " + problem.Detail
	}
	for task, err := range e.Playable(e.Source.InOrder(ctx)) {
		if err != nil {
			return s, err
		}
		if !provable(task) {
			continue
		}
		digest, err := e.ProofDigest(task)
		if err != nil {
			return s, err
		}
		known, err := store.Get(digest)
		if err != nil {
			return s, err
		}
		why := known.Unsound()
		if lacking(known) {
			s.lacking++
			why = "it could not be proven" + details[task.ID]
		}
		if why != "" {
			s.failing = append(s.failing, task.ID+": "+why)
		}
	}
	return s, nil
}
