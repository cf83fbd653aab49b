package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/desk"
)

func newToolsClasses(std stdio) *cobra.Command {
	var source toolSource
	var asJSON bool
	cmd := &cobra.Command{
		Use: "classes [TOOL...]", Short: "List the classes of faults that can be planted into calls of tools",
		RunE: source.use(func(cmd *cobra.Command, names []string, box *desk.Toolbox) error {
			lines, err := box.Faults(cmd.Context(), names)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return writeJSON(std.out, lines)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, line := range lines {
				fmt.Fprintf(table, "%s\t%s\t%s\n", line.Tool, line.Class, line.Shows())
			}
			return table.Flush()
		}),
	}
	source.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with variants and how long each lasts")
	return cmd
}
