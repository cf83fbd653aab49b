package main

import (
	"errors"

	"trajgen/pipeline/run"
	"trajgen/pipeline/where"

	"github.com/spf13/cobra"
)

func newReport(std stdio) *cobra.Command {
	var dir, condition string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report --run DIR",
		Short: "Show outcomes, rewards, tools and costs of a run",
		Long:  "Reads the journal of a run, also of one that is still going on, and prints the report. --where counts only the\nepisodes for which a condition holds, as trajgen export has it.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			m, reader, err := run.OpenFinished(dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			report, err := run.BuildReport(cmd.Context(), reader, dir, m, condition)
			if errors.Is(err, where.ErrUnknown) {
				err = usage(err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, report)
			}
			width, color := paper(std.out)
			return report.WriteTerminal(std.out, width, color)
		},
	}
	cmd.Flags().StringVar(&dir, "run", "", "run directory")
	cmd.Flags().StringVar(&condition, "where", "", "condition that an episode must meet, as with trajgen export")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	_ = cmd.MarkFlagRequired("run")
	return cmd
}
