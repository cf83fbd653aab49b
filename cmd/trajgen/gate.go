package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/gate"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/pipeline/run/versus"
)

func newGate(std stdio) *cobra.Command {
	settings, path := versus.Default(), ""
	cmd := &cobra.Command{
		Use:   "gate [-f gate.yaml] [flags]",
		Short: "Decide whether a candidate is worse than a base, with a known rate of false alarms",
		Long: `Says PASS (exit code 0), FAIL (4), INCONCLUSIVE (6) or BROKEN (7): whether the candidate is worse by more than the margin on these
very tasks. Two finished runs are compared with one look. A candidate that is a run file is played against the base, task by task,
until it is shown. After an interruption or a crash the same command goes on and says the same.`,
		Example: `  trajgen gate --base runs/monday --candidate runs/tuesday --margin 0.05
  trajgen gate -f gate.yaml
  trajgen gate plan -f gate.yaml`,
	}
	apply := bindFields(cmd.PersistentFlags(), run.SettingsOf(&settings))
	cmd.PersistentFlags().StringVarP(&path, "file", "f", "", "gate file (YAML) with the same settings")
	load := func(*cobra.Command, []string) (err error) {
		if path != "" {
			err = run.Decode(path, "a gate file", &settings)
		}
		return usage(errors.Join(err, apply()))
	}
	judging := func(cmd *cobra.Command, judge func(context.Context) (*gate.Result, error)) *cobra.Command {
		var made *gate.Result
		show := showing(std, cmd, func(cmd *cobra.Command, _ []string) (_ *gate.Result, err error) {
			made, err = judge(cmd.Context())
			return made, err
		}, func(w io.Writer, r *gate.Result) error { return r.WriteText(w) }).RunE
		cmd.Args, cmd.PreRunE = cobra.NoArgs, load
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := show(cmd, args)
			_, broke := errors.AsType[*budget.Reached](err)
			switch {
			case broke:
				return withCode(exitBudget, err)
			case errors.Is(err, errInterrupted) || errors.Is(err, check.ErrDrained):
				return withCode(exitInterrupted, err)
			case err != nil || made.Verdict == gate.Pass:
				return err
			}
			return withCode(map[gate.Verdict]int{gate.Fail: exitGate, gate.Inconclusive: exitUndecided, gate.Broken: exitUntrusted}[made.Verdict], errQuiet)
		}
		return cmd
	}
	judging(cmd, func(ctx context.Context) (*gate.Result, error) {
		return settings.Judge(ctx, runOptions{logFormat: "text"}.watchProof(std), std.err)
	})
	replay := judging(&cobra.Command{Use: "replay --out DIR", Short: "Judge the plays of a gate again"}, func(ctx context.Context) (*gate.Result, error) { return settings.Replay(ctx) })
	plan := showing(std, &cobra.Command{Use: "plan", Short: "Say how many plays a verdict is likely to take", Args: cobra.NoArgs, PreRunE: load}, func(cmd *cobra.Command, _ []string) (*gate.Forecast, error) {
		return settings.Forecast(cmd.Context())
	}, func(w io.Writer, f *gate.Forecast) error { return f.WriteText(w) })
	cmd.AddCommand(plan, replay)
	return cmd
}
