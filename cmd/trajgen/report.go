package main

import (
	"errors"
	"io"

	"trajgen/outputs/report"
	"trajgen/pipeline/run"
	"trajgen/pipeline/where"

	"github.com/spf13/cobra"
)

func newReport(std stdio) *cobra.Command {
	var dir, condition string
	cmd := &cobra.Command{
		Use:   "report --run DIR",
		Short: "Show outcomes, rewards, tools and costs of a run",
		Long:  "Reads the journal of a run, also of one that is still going on, and prints the report. --where counts only the\nepisodes for which a condition holds, as trajgen export has it.",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().StringVar(&condition, "where", "", "condition that an episode must meet, as with trajgen export")
	_ = cmd.MarkFlagRequired("run")
	return showing(std, cmd, func(cmd *cobra.Command, _ []string) (_ *report.Report, err error) {
		m, reader, err := run.OpenFinished(dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, reader.Close()) }()
		made, err := run.BuildReport(cmd.Context(), reader, dir, m, condition)
		if errors.Is(err, where.ErrUnknown) {
			err = usage(err)
		}
		return made, err
	}, func(w io.Writer, made *report.Report) error {
		width, color := paper(w)
		return made.WriteTerminal(w, width, color)
	})
}
