package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/pipeline/run"
)

func newCheck(std stdio) *cobra.Command {
	file := run.Default()
	opts := runOptions{logFormat: "text"}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [-f run.yaml] [flags]",
		Short: "Validate a run file and its dataset, and prove every task's verifier",
		Long: `Validates the run file and the dataset, probes the sandbox, and plays each task twice: its reference solution must
score and doing nothing must not. No model is asked and no token is paid.`,
		Example: `  trajgen check --dataset bundled
  trajgen check -f run.yaml`,
		Args: flagsAlone,
	}
	apply := bindFields(cmd.Flags(), &file)
	cmd.Flags().StringVarP(&opts.path, "file", "f", "", "run file (YAML)")
	pluginFlag(cmd.Flags(), &opts.plugins)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&opts.quiet, "quiet", false, "no progress")
	groupHelp(cmd, std)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := opts.load(&file, apply); err != nil {
			return usage(err)
		}
		sweep := file.CheckSweep()
		// Validated as a run that needs no model.
		file.Scripted.Policy, file.Model.Name, file.Model.BaseURL, file.Model.Endpoints = "oracle", "", "", nil
		// Settings that bound or change a model's replies do not apply to a proof of the tasks.
		file.Model.MaxTokens, file.Limits.Tokens, file.Model.ExtraBody, file.Model.Headers, file.Model.HeaderEnv = 0, 0, nil, nil, nil
		file.Sweep, file.Model.Fallbacks, file.Model.ToolChoice, file.Model.ParallelToolCalls, file.Model.Provider = run.Sweep{}, nil, "", nil, nil
		file.Tape.Record, file.Tape.Replay = "", ""
		file.Budget.USD, file.Budget.Tokens, file.Limits.USD, file.Context.SummaryModel, file.Context.SummaryBaseURL, file.Context.SummaryAPIKeyEnv = 0, 0, 0, "", "", ""
		file.Context.ContextWindow, file.Context.Compaction = 0, ""
		file.User.Model, file.User.BaseURL, file.User.APIKeyEnv, file.NoUser = "", "", "", true
		if err := errors.Join(sweep, file.Validate()); err != nil {
			return usage(err)
		}
		return proveTasks(cmd.Context(), std, file, opts, asJSON)
	}
	return cmd
}

// checked is the output of `check --json`.
type checked struct {
	Tasks    int       `json:"tasks"`
	Sandbox  any       `json:"sandbox"`
	NoGold   []string  `json:"no_gold"`   // tasks without a reference solution: not proven
	NoVerify []string  `json:"no_verify"` // tasks without a verifier: not proven
	Problems []problem `json:"problems"`
}

// problem is a task that fails its proof.
type problem struct {
	Task    string          `json:"task"`
	Policy  string          `json:"policy"`
	Outcome episode.Outcome `json:"outcome"`
	Reward  *float64        `json:"reward"`
	Detail  string          `json:"detail"`
}

func proveTasks(ctx context.Context, std stdio, file run.File, opts runOptions, asJSON bool) error {
	result := checked{NoGold: []string{}, NoVerify: []string{}, Problems: []problem{}}
	for _, policy := range []string{"oracle", "noop"} {
		file.Scripted.Policy = policy
		if err := checkPolicy(ctx, std, file, opts, &result); err != nil {
			return err
		}
	}
	slices.SortStableFunc(result.Problems, func(a, b problem) int { return strings.Compare(a.Task, b.Task) })
	if asJSON {
		if err := writeJSON(std.out, result); err != nil {
			return err
		}
	} else {
		result.print(std)
	}
	if len(result.Problems) > 0 {
		return withCode(exitFailed, fmt.Errorf("%d of %d tasks fail", distinct(result.Problems), result.Tasks))
	}
	return nil
}

func checkPolicy(ctx context.Context, std stdio, file run.File, opts runOptions, result *checked) (err error) {
	warnings := std.err
	if file.Scripted.Policy != "oracle" {
		warnings = io.Discard // the first policy has printed them
	}
	exp, err := file.Open(ctx, warnings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exp.Close()) }()
	ctx, drain, stop := interruptible(ctx, std.err)
	defer stop()
	result.Tasks, result.Sandbox = exp.Tasks, exp.Backend.Guarantees()
	width, isTerminal := terminal(std.err)
	observe := func(pipeline.Event) {}
	if !opts.quiet && isTerminal {
		bar := newProgress(std.err, exp.Tasks, true, width, time.Now)
		observe = bar.observe
		defer bar.end()
	}
	kept := &memory{policy: file.Scripted.Policy, result: result, gold: map[string]bool{}}
	player := exp.Player()
	player.Furnish = file.Scripted.Policy == "oracle" // once is enough
	summary, err := pipeline.Run(ctx, pipeline.Config{
		Tasks: kept.noting(ctx, exp), Draw: everyTool, Seed: file.Seed, Samples: 1, Workers: file.Play.Workers,
		Player: player, Journal: kept, Drain: drain, Observe: observe,
	})
	if errors.Is(err, errInterrupted) || summary.Drained {
		return withCode(exitInterrupted, errors.New("interrupted"))
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

// memory is a journal that only keeps the verdicts.
type memory struct {
	policy string
	mu     sync.Mutex // guards the fields below
	gold   map[string]bool
	result *checked
}

// noting yields the tasks and records those that cannot be proven.
func (m *memory) noting(ctx context.Context, exp *run.Experiment) func(func(*episode.Task, error) bool) {
	return func(yield func(*episode.Task, error) bool) {
		for task, err := range exp.Playable(exp.Source.InOrder(ctx)) {
			if err != nil {
				yield(nil, err)
				return
			}
			m.mu.Lock()
			m.gold[task.ID] = len(task.Gold) > 0
			if m.policy == "oracle" && len(task.Gold) == 0 {
				m.result.NoGold = append(m.result.NoGold, task.ID)
			}
			if m.policy == "oracle" && len(task.Verify) == 0 {
				m.result.NoVerify = append(m.result.NoVerify, task.ID)
			}
			m.mu.Unlock()
			if !yield(task, nil) {
				return
			}
		}
	}
}

func (m *memory) Last(string) (pipeline.Record, bool) { return pipeline.Record{}, false }

func (m *memory) Append(_ context.Context, ep *episode.Episode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	proven := len(ep.Task.Verify) > 0 && (m.policy == "noop" || m.gold[ep.Key.Task])
	scored := ep.Reward != nil && *ep.Reward >= rollout.SuccessAt
	zero := ep.Reward != nil && *ep.Reward == 0
	if ep.Outcome != episode.SandboxError && (!proven || m.policy == "oracle" && scored || m.policy == "noop" && zero) {
		return nil
	}
	found := problem{Task: ep.Key.Task, Policy: m.policy, Outcome: ep.Outcome, Reward: ep.Reward, Detail: detail(ep)}
	said := func(p problem) bool { return p.Task == found.Task && p.Detail == found.Detail }
	if found.Outcome == episode.SandboxError && slices.ContainsFunc(m.result.Problems, said) {
		return nil // a set-up fails in the same way for both
	}
	m.result.Problems = append(m.result.Problems, found)
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

func (c checked) print(std stdio) {
	for _, p := range c.Problems {
		want := "the reference solution must score 1"
		switch {
		case p.Outcome == episode.SandboxError:
			want = "the task must have its sandbox"
		case p.Policy == "noop":
			want = "doing nothing must score 0"
		}
		got := "no reward"
		if p.Reward != nil {
			got = fmt.Sprintf("reward %v", *p.Reward)
		}
		fmt.Fprintf(std.out, "%s: %s, got %s (%s)\n  %s\n", p.Task, want, got, p.Outcome, strings.ReplaceAll(p.Detail, "\n", "\n  "))
	}
	fmt.Fprintf(std.out, "%d tasks: %d fail, %d without a reference solution, %d without a verifier\n",
		c.Tasks, distinct(c.Problems), len(c.NoGold), len(c.NoVerify))
}

func distinct(problems []problem) int {
	tasks := map[string]bool{}
	for _, p := range problems {
		tasks[p.Task] = true
	}
	return len(tasks)
}
