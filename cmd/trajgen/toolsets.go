package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/desk"
)

// writeJSON writes one indented JSON document.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// showing makes a command that prints what it finds: as text, or with --json as it is.
func showing[T any](std stdio, cmd *cobra.Command, find func(cmd *cobra.Command, args []string) (T, error),
	text func(w io.Writer, found T) error) *cobra.Command {
	var asJSON bool
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := find(cmd, args)
		switch {
		case err != nil:
			return err
		case asJSON:
			return writeJSON(std.out, found)
		}
		return text(std.out, found)
	}
	return cmd
}

// listing is a command that prints what there is: a line for each, with tabs between columns, or JSON.
func listing[T any](std stdio, use, short string, all func(context.Context) ([]T, error), line func(w io.Writer, one T)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	find := func(cmd *cobra.Command, _ []string) ([]T, error) { return all(cmd.Context()) }
	return showing(std, cmd, find, func(w io.Writer, list []T) error {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, one := range list {
			line(table, one)
		}
		return table.Flush()
	})
}

func newToolsets(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "toolsets", Short: "List and resolve toolsets"}
	return group(cmd, newToolsetsList(std), newToolsetsResolve(std))
}

func newToolsetsList(std stdio) *cobra.Command {
	var asJSON bool
	var source toolSource
	cmd := &cobra.Command{
		Use: "list", Short: "List the toolsets", Args: cobra.NoArgs,
		RunE: source.use(func(cmd *cobra.Command, _ []string, box *desk.Toolbox) error {
			lines, err := box.Toolsets()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, lines)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, line := range lines {
				text := strings.Join(line.AvailableTools, " ")
				switch {
				case line.Outside:
					text = "(outside of what trajgen is for)"
				case len(line.Unavailable) > 0:
					text = strings.TrimSpace(fmt.Sprintf("%s (%d unavailable)", text, len(line.Unavailable)))
				}
				fmt.Fprintf(table, "%s\t%s\n", line.Name, text)
			}
			return table.Flush()
		}),
	}
	source.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newToolsetsResolve(std stdio) *cobra.Command {
	var asJSON bool
	var disabled []string
	var source toolSource
	cmd := &cobra.Command{
		Use: "resolve NAME...", Short: "Print the sorted tool names of toolsets", Args: cobra.MinimumNArgs(1),
		RunE: source.use(func(_ *cobra.Command, args []string, box *desk.Toolbox) error {
			names, err := box.Registry.Resolve(args, disabled)
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
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	source.flags(cmd.Flags())
	cmd.Flags().StringSliceVar(&disabled, "disable", nil, "toolsets or tools to leave out")
	return cmd
}
