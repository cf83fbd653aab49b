package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// writeJSON writes one indented JSON document.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func newToolsets(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "toolsets", Short: "List and resolve toolsets"}
	return group(cmd, newToolsetsList(std), newToolsetsResolve(std))
}

func newToolsetsList(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the toolsets", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			reg, err := newRegistry(nil)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, reg.Toolsets())
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, set := range reg.Toolsets() {
				fmt.Fprintf(table, "%s\t%s\n", set.Name, strings.Join(set.Resolved, " "))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newToolsetsResolve(std stdio) *cobra.Command {
	var asJSON bool
	var disabled []string
	cmd := &cobra.Command{
		Use: "resolve NAME...", Short: "Print the sorted tool names of toolsets", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			reg, err := newRegistry(nil)
			if err != nil {
				return err
			}
			names, err := reg.Resolve(args, disabled)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return writeJSON(std.out, append([]string{}, names...))
			}
			for _, name := range names {
				fmt.Fprintln(std.out, name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringSliceVar(&disabled, "disable", nil, "toolsets or tools to leave out")
	return cmd
}
