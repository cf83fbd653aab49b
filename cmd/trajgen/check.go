package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"trajgen/pipeline"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/pipeline/run/progress"
	"trajgen/tools/faults"
)

func newCheck(std stdio) *cobra.Command {
	var opts runOptions
	cmd := newProving(std, &cobra.Command{
		Use:   "check [-f run.yaml] [flags]",
		Short: "Validate a run file and its dataset, and prove every task's verifier",
		Long: `Validates the run file and the dataset, probes the sandbox, and plays each task twice: its reference solution must
score and doing nothing must not. No model is asked and no token is paid.

With --faults each reference solution is then played with each fault at each of its calls, by an agent that makes failed calls
again and by one that uses another tool, and is said to recover where one of them succeeds. With --json that list is printed
alone: it is a file for faults.recoverable of a run.`,
		Example: `  trajgen check --dataset bundled
  trajgen check -f run.yaml
  trajgen check -f run.yaml --faults faults.yaml --json > recoverable.json`,
	}, func() ([]check.Attack, error) { return nil, nil }, &opts)
	cmd.Flags().StringVar(&opts.faults, "faults", "", "file with the section faults of the run file (YAML)")
	return cmd
}

func newAudit(std stdio) *cobra.Command {
	var names []string
	cmd := newProving(std, &cobra.Command{
		Use:   "audit [-f run.yaml] [flags]",
		Short: "Attack every task's verifier with agents that cheat",
		Long: `Does what check does, and has agents that cheat play each task with the tools, the sandbox and the limits of the run:
one that reaches the reward of a success shows a weakness of the verifier. No model is asked and no token is paid.`,
		Example: `  trajgen audit --dataset bundled
  trajgen audit -f run.yaml --attacks stop-verifier,reward-file`,
	}, func() ([]check.Attack, error) { return check.ChooseAttacks(names) }, &runOptions{})
	cmd.Flags().StringSliceVar(&names, "attacks", nil, "only these attacks (default: all)")
	return cmd
}

// newProving completes a command that plays tasks without a model.
func newProving(std stdio, cmd *cobra.Command, choose func() ([]check.Attack, error), opts *runOptions) *cobra.Command {
	file := run.Default()
	opts.logFormat = "text"
	var asJSON bool
	cmd.Args = flagsAlone
	apply := bindFields(cmd.Flags(), file.Settings())
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
		attacks, unknown := choose()
		if err := errors.Join(err, unknown, file.Faults.Validate()); err != nil {
			return usage(err)
		}
		return prove(cmd.Context(), std, provable, attacks, *opts, asJSON, file.Faults)
	}
	return cmd
}

func prove(ctx context.Context, std stdio, file run.File, attacks []check.Attack, opts runOptions, asJSON bool, planted faults.Settings) error {
	proof, err := check.Prove(ctx, file, attacks, std.err, opts.watchProof(std))
	if errors.Is(err, errInterrupted) || errors.Is(err, check.ErrDrained) {
		return withCode(exitInterrupted, errors.New("interrupted"))
	}
	if err != nil {
		return err
	}
	switch failing := proof.Failing(); {
	case !asJSON:
		_, err = io.WriteString(std.out, proof.Text())
	case opts.faults == "" || failing > 0:
		err = writeJSON(std.out, proof)
	}
	if failing := proof.Failing(); err == nil && failing > 0 {
		return withCode(exitFailed, fmt.Errorf("%d of %d tasks fail", failing, proof.Tasks))
	}
	if err != nil || opts.faults == "" {
		return err
	}
	recovered, err := check.Recover(ctx, file, planted, std.err, opts.watchProof(std))
	if errors.Is(err, errInterrupted) || errors.Is(err, check.ErrDrained) {
		return withCode(exitInterrupted, errors.New("interrupted"))
	}
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(std.out, recovered)
	}
	return check.WriteRecoveries(std.out, recovered)
}

// watchProof shows a proof under way, and has signals end it.
func (o runOptions) watchProof(std stdio) check.Watch {
	return func(ctx context.Context, episodes int) (context.Context, func(pipeline.Event), <-chan struct{}, func()) {
		ctx, drain, stop := interruptible(ctx, std.err, nil)
		width, isTerminal := terminal(std.err)
		if o.quiet || !isTerminal || o.logFormat != "text" {
			return ctx, nil, drain, stop
		}
		bar := progress.New(std.err, episodes, true, width, time.Now)
		return ctx, bar.Observe, drain, func() {
			bar.End()
			stop()
		}
	}
}
