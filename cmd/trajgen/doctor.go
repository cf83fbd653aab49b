package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
)

func newDoctor(std stdio) *cobra.Command {
	var asJSON bool
	var path string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what works on this machine, and what to install for the rest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file := run.Default()
			if path != "" {
				if err := run.Decode(path, "a run file", &file); err != nil {
					return usage(err)
				}
			}
			findings, err := setup.Doctor(cmd.Context(), file)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return writeJSON(std.out, findings)
			}
			for _, f := range findings {
				mark := "ok  "
				if !f.OK {
					mark = "no  "
				}
				fmt.Fprintf(std.out, "%s  %-22s %s\n", mark, f.What, f.Detail)
				if f.Fix != "" {
					fmt.Fprintf(std.out, "      %s\n", f.Fix)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVarP(&path, "file", "f", "", "run file (YAML) for which it says what toolsets need")
	return cmd
}
