package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

func newDoctor(std stdio) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what works on this machine, and what to install for the rest",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&path, "file", "f", "", "run file (YAML) for which it says what toolsets need")
	return showing(std, cmd, func(cmd *cobra.Command, _ []string) ([]setup.Finding, error) {
		file := run.Default()
		if path != "" {
			if err := run.Decode(path, "a run file", &file); err != nil {
				return nil, usage(err)
			}
		}
		findings, err := setup.Doctor(cmd.Context(), file)
		return findings, usage(err)
	}, func(w io.Writer, findings []setup.Finding) error {
		for _, f := range findings {
			mark := "ok  "
			if !f.OK {
				mark = "no  "
			}
			fmt.Fprintf(w, "%s  %-22s %s\n", mark, f.What, f.Detail)
			if f.Fix != "" {
				fmt.Fprintf(w, "      %s\n", f.Fix)
			}
		}
		return nil
	})
}
