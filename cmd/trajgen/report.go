package main

import (
	"errors"

	"trajgen/pipeline/run"

	"github.com/spf13/cobra"
)

func newReport(std stdio) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report --run DIR",
		Short: "Show outcomes, rewards, tools and costs of a run",
		Long:  "Reads the journal of a run, also of one that is still going on, and prints the report.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			m, reader, err := run.OpenFinished(dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			report, err := run.BuildReport(cmd.Context(), reader, dir, m)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	_ = cmd.MarkFlagRequired("run")
	return cmd
}
