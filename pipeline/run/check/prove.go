package check

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/run"
	"trajgen/tools/home"
	"trajgen/tools/skills"
	"trajgen/tools/web"
)

// Proof is what a dataset's reference solutions and doing nothing score, as `trajgen check --json` prints it.
type Proof struct {
	Tasks    int       `json:"tasks"`
	Sandbox  any       `json:"sandbox"`
	NoGold   []string  `json:"no_gold"`   // tasks without a reference solution: not proven
	NoVerify []string  `json:"no_verify"` // tasks without a verifier: not proven
	Problems []Problem `json:"problems"`
}

// Problem is a task that fails its proof.
type Problem struct {
	Task    string          `json:"task"`
	Policy  string          `json:"policy"`
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
	file.Sweep, file.Tape, file.User, file.NoUser, file.Web.Summary = run.Sweep{}, record.Settings{}, run.User{}, true, web.Summary{}
	if file.Skills.Share = 0; file.Skills.Mode != "" {
		file.Skills.Mode = skills.With // a reference solution may need them
	}
	file.Media.VisionModel, file.Media.VisionBaseURL, file.Media.VisionAPIKeyEnv = "", "", ""
	file.Home = home.Settings{} // a proof acts on nothing outside of this machine
	file.Context = rollout.ContextSettings{CompactAt: file.Context.CompactAt, CompactTo: file.Context.CompactTo}
	return file, errors.Join(sweep, file.Validate())
}

// Watch shows a proof under way, and ends it early. It is called before each policy is played; observe, which may be nil, gets its
// events, a closed drain or an ended context ends it, and end is called afterwards.
type Watch func(ctx context.Context, tasks int) (_ context.Context, observe func(pipeline.Event), drain <-chan struct{}, end func())

// ErrDrained is a proof that was ended before all tasks were played.
var ErrDrained = errors.New("interrupted")

// Prove plays a provable run file: each task's reference solution, which must score, and then nothing, which must not. w gets the
// warnings.
func Prove(ctx context.Context, file run.File, w io.Writer, watch Watch) (*Proof, error) {
	p := &Proof{NoGold: []string{}, NoVerify: []string{}, Problems: []Problem{}}
	for _, policy := range []string{"oracle", "noop"} {
		file.Scripted.Policy = policy
		if err := p.play(ctx, file, w, watch); err != nil {
			return nil, err
		}
		w = io.Discard // the first policy has printed the warnings
	}
	slices.SortStableFunc(p.Problems, func(a, b Problem) int { return strings.Compare(a.Task, b.Task) })
	return p, nil
}

func (p *Proof) play(ctx context.Context, file run.File, w io.Writer, watch Watch) (err error) {
	exp, err := file.Open(ctx, w, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exp.Close()) }()
	p.Tasks, p.Sandbox = exp.Tasks, exp.Backend.Guarantees()
	kept := &verdicts{policy: file.Scripted.Policy, proof: p, gold: map[string]bool{}}
	player := exp.Player()
	player.Sandboxes.Furnish = file.Scripted.Policy == "oracle" // once is enough
	ctx, observe, drain, end := watch(ctx, exp.Tasks)
	defer end()
	summary, err := pipeline.Run(ctx, pipeline.Config{
		Tasks: kept.noting(ctx, exp), Draw: everyTool, Seed: file.Seed, Samples: 1, Workers: file.Play.Workers,
		Player: player, Journal: kept, Drain: drain, Observe: observe,
	})
	if err == nil && summary.Drained {
		return ErrDrained
	}
	return err
}

// everyTool gives a task its own toolsets, or else all, whatever the run draws: a reference solution depends only on the task.
func everyTool(task *episode.Task) (pipeline.Toolsets, error) {
	if len(task.Toolsets) > 0 {
		return pipeline.Toolsets{Fixed: task.Toolsets}, nil
	}
	return pipeline.Toolsets{Fixed: []string{"all"}}, nil
}

// verdicts is a journal that only keeps what fails.
type verdicts struct {
	policy string
	mu     sync.Mutex // guards the fields below
	gold   map[string]bool
	proof  *Proof
}

// noting yields the tasks and records those that cannot be proven.
func (m *verdicts) noting(ctx context.Context, exp *run.Experiment) func(func(*episode.Task, error) bool) {
	return func(yield func(*episode.Task, error) bool) {
		for task, err := range exp.Playable(exp.Source.InOrder(ctx)) {
			if err != nil {
				yield(nil, err)
				return
			}
			m.mu.Lock()
			m.gold[task.ID] = len(task.Gold) > 0
			if m.policy == "oracle" && len(task.Gold) == 0 {
				m.proof.NoGold = append(m.proof.NoGold, task.ID)
			}
			if m.policy == "oracle" && len(task.Verify) == 0 {
				m.proof.NoVerify = append(m.proof.NoVerify, task.ID)
			}
			m.mu.Unlock()
			if !yield(task, nil) {
				return
			}
		}
	}
}

func (m *verdicts) Last(string) (pipeline.Record, bool) { return pipeline.Record{}, false }

func (m *verdicts) Append(_ context.Context, ep *episode.Episode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	proven := len(ep.Task.Verify) > 0 && (m.policy == "noop" || m.gold[ep.Key.Task])
	scored := ep.Reward != nil && *ep.Reward >= rollout.SuccessAt
	zero := ep.Reward != nil && *ep.Reward == 0
	if ep.Outcome != episode.SandboxError && (!proven || m.policy == "oracle" && scored || m.policy == "noop" && zero) {
		return nil
	}
	found := Problem{Task: ep.Key.Task, Policy: m.policy, Outcome: ep.Outcome, Reward: ep.Reward, Detail: detail(ep)}
	said := func(p Problem) bool { return p.Task == found.Task && p.Detail == found.Detail }
	if found.Outcome == episode.SandboxError && slices.ContainsFunc(m.proof.Problems, said) {
		return nil // a set-up fails in the same way for both
	}
	m.proof.Problems = append(m.proof.Problems, found)
	return nil
}

// detail says why an episode ended as it did.
func detail(ep *episode.Episode) string {
	if ep.Fault != nil {
		return ep.Fault.Class + ": " + ep.Fault.Message
	}
	for _, reward := range ep.Rewards {
		if reward.Value < 1 {
			return reward.Name + ": " + reward.Detail
		}
	}
	return string(ep.Stop)
}
