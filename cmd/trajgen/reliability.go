package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/reliability"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
	"trajgen/tools/faults"
)

func newReliability(std stdio) *cobra.Command {
	var dir, versus, out string
	var most float64
	var made *reliability.Report
	cmd := &cobra.Command{
		Use:   "reliability --run DIR [--vs DIR]",
		Short: "Show what agents did and lost when tools failed",
		Long: `Pairs the twins of a run with their clean episodes: how often agents noticed a planted fault, what they lost and what it
cost, by tool and class, with intervals. --out writes report.md, report.json and report.html into a folder.

The exit code is 7 when the numbers cannot be trusted (the placebos did harm, or more than 30 % of the twins diverged), 3 when
more pairs have no verdict than limits.max_unresolved of the faults allows (a tenth), and 4 when a harm is proven to be above
limits.max_harm or --max-harm, or the errors of a tool above limits.max_error_rate.`,
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().StringVar(&versus, "vs", "", "run directory to compare with: another model, or other tools, on the same tasks")
	cmd.Flags().StringVar(&out, "out", "", "folder for report.md, report.json and report.html")
	cmd.Flags().Float64Var(&most, "max-harm", 1, "harm of a call that no cell may exceed, in place of the limit of the faults")
	_ = cmd.MarkFlagRequired("run")
	show := showing(std, cmd, func(cmd *cobra.Command, _ []string) (_ *reliability.Report, err error) {
		made, err = check.Reliability(cmd.Context(), dir, versus, out)
		return made, err
	}, func(w io.Writer, r *reliability.Report) error { return r.WriteText(w) }).RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show(cmd, args); err != nil {
			return err
		}
		if err := made.Broken(); err != nil {
			return withCode(exitUntrusted, err)
		}
		if err := made.Unsettled(); err != nil {
			return withCode(exitErrors, err)
		}
		if cmd.Flags().Changed("max-harm") {
			made.Limits.Harm = most
		}
		return withCode(exitGate, made.Exceeding())
	}
	cmd.AddCommand(newReliabilityPlan(std))
	return cmd
}

func newReliabilityPlan(std stdio) *cobra.Command {
	var dir, file string
	cmd := &cobra.Command{
		Use:   "plan --run CLEAN --faults FILE",
		Short: "Say which twins a finished run would have, and what they would cost; nothing is played",
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory of clean episodes")
	cmd.Flags().StringVar(&file, "faults", "", "file with the section faults of the run file (YAML)")
	_ = errors.Join(cmd.MarkFlagRequired("run"), cmd.MarkFlagRequired("faults"))
	return showing(std, cmd, func(cmd *cobra.Command, _ []string) (*run.TwinPlan, error) {
		var settings faults.Settings
		if err := errors.Join(run.Decode(file, "a file of faults", &settings), settings.Validate()); err != nil {
			return nil, usage(err)
		}
		return check.PlanTwins(cmd.Context(), dir, settings, std.err)
	}, func(w io.Writer, plan *run.TwinPlan) error { return plan.WriteText(w) })
}
