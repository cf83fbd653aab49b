package check

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/run"
	"trajgen/tools/faults"
	"trajgen/tools/home"
	"trajgen/tools/skills"
	"trajgen/tools/web"
)

// Proof is what agents without a model score at a dataset's tasks, as `trajgen check --json` and `trajgen audit --json` print it.
type Proof struct {
	Tasks    int       `json:"tasks"`
	Sandbox  any       `json:"sandbox"`
	NoGold   []string  `json:"no_gold"`   // tasks without a reference solution: not proven
	NoVerify []string  `json:"no_verify"` // tasks without a verifier: not proven
	Problems []Problem `json:"problems"`

	// Attacks are those that were tried, DoNothing first, with how many tasks fell to each. Verdicts are about each task with a
	// verifier. Both are nil without attacks.
	Attacks  []Tally   `json:"attacks,omitempty"`
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Tally is how many tasks fell to an attack, of those at which it was tried.
type Tally struct {
	Attack
	Tried  int `json:"tried"`
	Passed int `json:"passed"`
}

// Verdict is what is known of a task's verifier.
type Verdict struct {
	Task string `json:"task"`
	episode.Proof
	Passed []string `json:"passed"` // attacks that had the reward of a success
}

// Problem is a task that fails its proof.
type Problem struct {
	Task    string          `json:"task"`
	Policy  string          `json:"policy"` // oracle, noop or an attack
	Outcome episode.Outcome `json:"outcome"`
	Reward  *float64        `json:"reward"`
	Detail  string          `json:"detail"`
}

// Failing is how many tasks fail.
func (p *Proof) Failing() int {
	tasks := map[string]bool{}
	for _, problem := range p.Problems {
		tasks[problem.Task] = true
	}
	return len(tasks)
}

// Provable is a run file as one that needs no model: settings that bound or change a model's replies do not apply to a proof of the
// tasks. The error says everything that is wrong.
func Provable(file run.File) (run.File, error) {
	sweep := file.CheckSweep()
	file.Scripted.Policy, file.Model.Name, file.Model.BaseURL, file.Model.Endpoints = "oracle", "", "", nil
	file.Model.MaxTokens, file.Model.ExtraBody, file.Model.Headers, file.Model.HeaderEnv = 0, nil, nil, nil
	file.Model.Fallbacks, file.Model.ToolChoice, file.Model.ParallelToolCalls, file.Model.Provider = nil, "", nil, nil
	file.Limits.Tokens, file.Limits.USD, file.Budget.USD, file.Budget.Tokens = 0, 0, 0, 0
	file.Faults = faults.Settings{} // see Recover
	file.Sweep, file.Tape, file.User, file.NoUser, file.Web.Summary = run.Sweep{}, record.Settings{}, run.User{}, true, web.Summary{}
	if file.Skills.Share = 0; file.Skills.Mode != "" {
		file.Skills.Mode = skills.With // a reference solution may need them
	}
	file.Media.VisionModel, file.Media.VisionBaseURL, file.Media.VisionAPIKeyEnv = "", "", ""
	file.Home = home.Settings{} // a proof acts on nothing outside of this machine
	file.Context = rollout.ContextSettings{CompactAt: file.Context.CompactAt, CompactTo: file.Context.CompactTo}
	return file, errors.Join(sweep, file.Validate())
}

// Watch shows a proof under way, and ends it early. It is called once; observe, which may be nil, gets its
// events, a closed drain or an ended context ends it, and end is called afterwards.
type Watch func(ctx context.Context, tasks int) (_ context.Context, observe func(pipeline.Event), drain <-chan struct{}, end func())

// ErrDrained is a proof that was ended before all tasks were played.
var ErrDrained = errors.New("interrupted")

// Prove plays a provable run file: each task's reference solution, which must score, and nothing, which must not. With attacks, each
// of these is tried at each task, too, and must not score. w gets the warnings.
func Prove(ctx context.Context, file run.File, attacks []Attack, w io.Writer, watch Watch) (*Proof, error) {
	return prove(ctx, file, attacks, w, watch, nil)
}

// prove plays the tasks that are chosen; nil chooses all.
func prove(ctx context.Context, file run.File, attacks []Attack, w io.Writer, watch Watch, chosen *choice) (_ *Proof, err error) {
	exp, err := file.Open(ctx, w, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, exp.Close()) }()
	kept := newVerdicts(exp, attacks, chosen)
	player := exp.Player()
	player.Sandboxes.Furnish, player.Sandboxes.Samples, player.Look = true, kept.agents(), kept.look
	ctx, observe, drain, end := watch(ctx, kept.proof.Tasks*kept.agents())
	defer end()
	summary, err := pipeline.Run(ctx, pipeline.Config{
		Tasks: kept.noting(ctx), Draw: everyTool, Seed: file.Seed, Samples: kept.agents(), Workers: file.Play.Workers,
		Player: player, Journal: kept, Drain: drain, Observe: observe,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errors.Join(ErrDrained, err)
	case err != nil:
		return nil, err
	case summary.Drained:
		return nil, ErrDrained
	}
	return kept.proven(), nil
}

// everyTool gives a task its own toolsets, or else all, whatever the run draws: a reference solution depends only on the task.
func everyTool(task *episode.Task) (pipeline.Toolsets, error) {
	if len(task.Toolsets) > 0 {
		return pipeline.Toolsets{Fixed: task.Toolsets}, nil
	}
	return pipeline.Toolsets{Fixed: []string{"all"}}, nil
}
