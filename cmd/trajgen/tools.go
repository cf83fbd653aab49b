package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run/desk"
)

func newTools(std stdio) *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "List, describe and call tools"}
	return group(cmd, newToolsList(std), newToolsSchema(std), newToolsCall(std), newToolsClasses(std), newToolsBench(std), newToolsDrift(std))
}

func newToolsList(std stdio) *cobra.Command {
	var asJSON, all bool
	var source toolSource
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools", Args: cobra.NoArgs,
		RunE: source.use(func(cmd *cobra.Command, _ []string, box *desk.Toolbox) error {
			lines, err := box.Tools()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, lines)
			}
			table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
			planned := 0
			for _, line := range lines {
				if line.Planned && !all {
					planned++
					continue
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", line.Name, line.Toolset, firstSentence(line))
			}
			if planned > 0 {
				fmt.Fprintf(std.err, "%d more are known by name and outside of what trajgen is for (--all lists them)\n", planned)
			}
			return table.Flush()
		}),
	}
	source.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, with those that --all adds")
	cmd.Flags().BoolVar(&all, "all", false, "with those that toolsets name and that are outside of what trajgen is for")
	return cmd
}

func firstSentence(line desk.ToolLine) string {
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
	var source toolSource
	var model string
	var toolsets []string
	cmd := &cobra.Command{
		Use:   "schema [NAME...]",
		Short: "Print the OpenAI function schemas, exactly as a model would be shown them",
		RunE: source.use(func(cmd *cobra.Command, args []string, box *desk.Toolbox) error {
			reg := box.Registry
			if model != "" {
				box.File.Model.Name = model
				reg = reg.WithQuirks(box.File.Quirks())
			}
			toolset, err := reg.Select(toolsets, nil)
			if err != nil {
				return usage(err)
			}
			schemas := []json.RawMessage{}
			names := toolset.Names()
			for i, schema := range toolset.Schemas() {
				if len(args) == 0 || slices.Contains(args, names[i]) {
					schemas = append(schemas, schema)
				}
			}
			for _, name := range args {
				if reason := toolset.Missing()[name]; reason != "" {
					return usage(fmt.Errorf("tool %q is unavailable: %s", name, reason))
				}
				if !slices.Contains(names, name) {
					return usage(fmt.Errorf("no tool %q (have %v)", name, names))
				}
			}
			return writeJSON(std.out, schemas)
		}),
	}
	source.flags(cmd.Flags())
	cmd.Flags().StringVar(&model, "model", "", "as a model of this name is shown them; servers differ in what they take (default: the run file's)")
	cmd.Flags().StringSliceVar(&toolsets, "toolsets", []string{"all"}, "toolsets that are enabled")
	return cmd
}
