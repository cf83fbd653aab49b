package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
// a model pays for no token, and one whose tools a recording answers plays in no sandbox of its own: these are not proven. Nor is a
// task whose reference solution acts outside of its sandbox, which is for check.
func Preflight(ctx context.Context, file run.File, e *run.Experiment, w io.Writer, watch Watch) error {
	if file.Play.Preflight == run.PreflightOff || file.Scripted.Policy != "" || file.Twin.Mode == twin.Replay || e.Played || e.Provable == 0 {
		return nil
	}
	c := &choice{store: file.Play.Proofs(), outside: map[string]string{}}
	for _, tool := range e.Registry.Tools() {
		c.outside[tool.Name] = tool.Outside
	}
	known, err := c.survey(ctx, e, nil)
	if err == nil && c.tasks > 0 {
		known, err = c.prove(ctx, file, e, w, watch)
	}
	must := file.Play.Preflight == run.PreflightMust
	switch {
	case err == nil:
		return known.verdict(e.Provable, must, w)
	case must || errors.Is(err, ErrDrained) || ctx.Err() != nil:
		return fmt.Errorf("preflight: %w (--preflight off leaves it out)", err)
	}
	fmt.Fprintf(w, "preflight: the tasks are not proven, and the run goes on without: %s\n", err)
	return nil
}

// prove proves the tasks that are chosen, and says how all stand then.
func (c *choice) prove(ctx context.Context, file run.File, e *run.Experiment, w io.Writer, watch Watch) (failing, error) {
	lacking := c.tasks
	slow := time.AfterFunc(patience, func() {
		fmt.Fprintf(w, "preflight: proving %d of %d tasks that have a reference solution, before the first token (--preflight off leaves it out)\n", lacking, e.Provable)
	})
	defer slow.Stop()
	provable, err := Provable(file)
	if err != nil {
		return nil, err
	}
	// A reference solution waits for no model: as many as a run may have episodes would only wait for the processors.
	provable.Play.Workers = min(provable.Play.Workers, 2*runtime.NumCPU())
	found, err := prove(ctx, provable, nil, io.Discard, watch, c)
	if err != nil {
		return nil, err
	}
	return c.survey(ctx, e, found.Problems)
}

// choice is of tasks that lack a proof.
type choice struct {
	tasks   int // how many there are
	store   proof.Store
	outside map[string]string // tool → who answers it outside of the sandbox, or ""
}

// takes says whether a task is chosen; nil chooses all.
func (c *choice) takes(task *episode.Task, digest string) (bool, error) {
	if c == nil {
		return true, nil
	}
	if !provable(task) || c.acts(task) != "" {
		return false, nil
	}
	known, err := c.store.Get(digest)
	return lacking(known), err
}

// acts names a tool of a task's reference solution that acts outside of the sandbox, or is "".
func (c *choice) acts(task *episode.Task) string {
	for _, steps := range append(slices.Collect(maps.Values(task.Subagents)), task.Gold) {
		for _, step := range steps {
			for _, call := range step.Calls {
				if c.outside[call.Name] != "" {
					return call.Name
				}
			}
		}
	}
	return ""
}

// provable says whether a task has what a proof needs.
func provable(task *episode.Task) bool { return len(task.Gold) > 0 && len(task.Verify) > 0 }

// lacking says whether a verdict on the reference solution or on doing nothing is not known.
func lacking(p *episode.Proof) bool {
	return p == nil || p.Gold == nil && p.Faults["gold"] == "" || p.Noop == nil && p.Faults["noop"] == ""
}

// failing are tasks that fail their proof, or lack it, and why.
type failing []string

// verdict warns of tasks that fail, or refuses a run that must have none.
func (s failing) verdict(of int, must bool, w io.Writer) error {
	if len(s) == 0 {
		return nil
	}
	text := fmt.Sprintf("preflight: %d of %d tasks with a reference solution fail their proof, or have none (trajgen check says more)", len(s), of)
	if must {
		return run.AsMistake(fmt.Errorf("%s:\n  %s", text, strings.Join(s, "\n  ")))
	}
	const most = 5
	shown := s[:min(most, len(s))]
	if len(shown) < len(s) {
		shown = append(slices.Clone(shown), "...")
	}
	fmt.Fprintf(w, "%s; their rows say so, and exports that rewards are learned from leave out those that fail:\n  %s\n", text, strings.Join(shown, "\n  "))
	return nil
}

// survey looks the tasks up, and counts those that are chosen; found is what was just found of them.
func (c *choice) survey(ctx context.Context, e *run.Experiment, found []Problem) (s failing, err error) {
	details := map[string]string{}
	c.tasks = 0
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
		known, err := c.store.Get(digest)
		if err != nil {
			return s, err
		}
		why := known.Unsound()
		switch acts := c.acts(task); {
		case !lacking(known):
		case acts != "":
			why = "it has no proof: its reference solution calls " + acts + ", which acts outside of the sandbox: trajgen check proves it"
		default:
			c.tasks++
			why = "it could not be proven" + details[task.ID]
		}
		if why != "" {
			s = append(s, task.ID+": "+why)
		}
	}
	return s, nil
}
