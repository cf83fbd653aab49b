package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/pipeline/run/progress"
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
		provable, err := check.Provable(file)
		if err != nil {
			return usage(err)
		}
		return prove(cmd.Context(), std, provable, opts, asJSON)
	}
	return cmd
}

func prove(ctx context.Context, std stdio, file run.File, opts runOptions, asJSON bool) error {
	proof, err := check.Prove(ctx, file, std.err, func(ctx context.Context, tasks int) (context.Context, func(pipeline.Event), <-chan struct{}, func()) {
		ctx, drain, stop := interruptible(ctx, std.err, nil)
		width, isTerminal := terminal(std.err)
		if opts.quiet || !isTerminal {
			return ctx, nil, drain, stop
		}
		bar := progress.New(std.err, tasks, true, width, time.Now)
		return ctx, bar.Observe, drain, func() {
			bar.End()
			stop()
		}
	})
	if errors.Is(err, errInterrupted) || errors.Is(err, check.ErrDrained) {
		return withCode(exitInterrupted, errors.New("interrupted"))
	}
	if err != nil {
		return err
	}
	if asJSON {
		if err := writeJSON(std.out, proof); err != nil {
			return err
		}
	} else {
		printProof(std, proof)
	}
	if failing := proof.Failing(); failing > 0 {
		return withCode(exitFailed, fmt.Errorf("%d of %d tasks fail", failing, proof.Tasks))
	}
	return nil
}

func printProof(std stdio, c *check.Proof) {
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
		c.Tasks, c.Failing(), len(c.NoGold), len(c.NoVerify))
}
