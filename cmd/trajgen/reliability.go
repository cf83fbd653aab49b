package main

import (
	"io"

	"github.com/spf13/cobra"

	"trajgen/outputs/reliability"
	"trajgen/pipeline/run/check"
)

func newReliability(std stdio) *cobra.Command {
	var dir, versus string
	var most float64
	var made *reliability.Report
	cmd := &cobra.Command{
		Use:   "reliability --run DIR [--vs DIR]",
		Short: "Show what agents did and lost when tools failed",
		Long: `Pairs the twins of a run with their clean episodes: how often agents noticed a planted fault, what they lost and what it
cost, by tool and class, with intervals. The exit code is 7 when the numbers cannot be trusted (the placebos did harm, or more
than 30 % of the twins diverged), and 4 when a harm is proven to be above --max-harm.`,
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().StringVar(&versus, "vs", "", "run directory to compare with: another model, or other tools, on the same tasks")
	cmd.Flags().Float64Var(&most, "max-harm", 1, "harm of a call that no cell may exceed")
	_ = cmd.MarkFlagRequired("run")
	show := showing(std, cmd, func(cmd *cobra.Command, _ []string) (_ *reliability.Report, err error) {
		made, err = check.Reliability(cmd.Context(), dir, versus)
		return made, err
	}, func(w io.Writer, r *reliability.Report) error { return r.WriteText(w) }).RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show(cmd, args); err != nil {
			return err
		}
		if err := made.Broken(); err != nil {
			return withCode(exitUntrusted, err)
		}
		return withCode(exitGate, made.Exceeding(most))
	}
	return cmd
}
