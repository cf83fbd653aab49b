package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newTools(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "List, describe and call tools"}
	return group(cmd, newToolsList(std), newToolsSchema(std), newToolsCall(std))
}

// toolLine is a tool in `tools list --json`.
type toolLine struct {
	Name        string `json:"name"`
	Toolset     string `json:"toolset"`
	Description string `json:"description"`
	Available   bool   `json:"available"`
	Reason      string `json:"reason,omitempty"`
}

func newToolsList(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reg, err := newRegistry(nil)
			if err != nil {
				return err
			}
			unavailable := reg.Unavailable(cmd.Context())
			lines := []toolLine{}
			for _, tool := range reg.Tools() {
				reason, missing := unavailable[tool.Name]
				lines = append(lines, toolLine{tool.Name, tool.Toolset, tool.Description, !missing, reason})
			}
			if asJSON {
				return writeJSON(std.out, lines)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			for _, line := range lines {
				fmt.Fprintf(table, "%s\t%s\t%s\n", line.Name, line.Toolset, firstSentence(line))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func firstSentence(line toolLine) string {
	if !line.Available {
		return "unavailable: " + line.Reason
	}
	for i, r := range line.Description {
		if r == '\n' || r == '.' {
			return line.Description[:i]
		}
	}
	return line.Description
}

func newToolsSchema(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME...]",
		Short: "The OpenAI function schemas, exactly as a model would be shown them",
		RunE: func(cmd *cobra.Command, args []string) error {
			reg, err := newRegistry(nil)
			if err != nil {
				return err
			}
			toolset, err := reg.Select(cmd.Context(), []string{"all"}, nil)
			if err != nil {
				return err
			}
			schemas := []json.RawMessage{}
			names := toolset.Names()
			for i, schema := range toolset.Schemas() {
				if len(args) == 0 || slices.Contains(args, names[i]) {
					schemas = append(schemas, schema)
				}
			}
			for _, name := range args {
				if !slices.Contains(names, name) {
					return usage(fmt.Errorf("no tool %q (have %v)", name, names))
				}
			}
			return writeJSON(std.out, schemas)
		},
	}
}
