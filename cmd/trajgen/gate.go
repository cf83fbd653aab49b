package main

import (
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/gate"
	"trajgen/pipeline/run/versus"
)

// gateCodes are the exit codes of verdicts.
var gateCodes = map[gate.Verdict]int{gate.Fail: exitGate, gate.Inconclusive: exitUndecided, gate.Broken: exitUntrusted}

func newGate(std stdio) *cobra.Command {
	settings := versus.Default()
	var made *gate.Result
	cmd := &cobra.Command{
		Use:   "gate --base DIR --candidate DIR",
		Short: "Decide whether a candidate is worse than a base, with a known rate of false alarms",
		Long: `Compares the plays of the same tasks in two finished runs, and says PASS (exit code 0), FAIL (4), INCONCLUSIVE (6) or BROKEN (7):
whether the candidate is worse by more than the margin on these very tasks. FAIL is said of a candidate that is not in --alpha of
the cases at most, PASS of one that is in --beta at most.`,
		Example: `  trajgen gate --base runs/monday --candidate runs/tuesday --margin 0.05`,
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&settings.Base, "base", "", "run directory")
	flags.StringVar(&settings.Candidate, "candidate", "", "run directory")
	flags.StringSliceVar(&settings.Changes, "changes", settings.Changes, "keys and sections of the run file in which the two may differ")
	flags.StringVar(&settings.Metric, "metric", settings.Metric, "success or reward")
	flags.Float64Var(&settings.Margin, "margin", settings.Margin, "how much worse the candidate may be")
	flags.Float64Var(&settings.Alpha, "alpha", settings.Alpha, "rate of false FAIL")
	flags.Float64Var(&settings.Beta, "beta", settings.Beta, "rate of false PASS")
	show := showing(std, cmd, func(cmd *cobra.Command, _ []string) (_ *gate.Result, err error) {
		made, err = settings.Finished(cmd.Context())
		return made, err
	}, func(w io.Writer, r *gate.Result) error { return r.WriteText(w) }).RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show(cmd, args); err != nil || made.Verdict == gate.Pass {
			return err
		}
		return withCode(gateCodes[made.Verdict], errQuiet)
	}
	return cmd
}
