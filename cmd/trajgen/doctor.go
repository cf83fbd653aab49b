package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// finding is a line of doctor.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func newDoctor(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what works on this machine, and what to install for the rest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context())
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
	return cmd
}

// examine opens every sandbox backend, and looks for the programs that tasks usually want inside it.
func examine(ctx context.Context) []finding {
	var findings []finding
	for _, name := range sandbox.Names() {
		findings = append(findings, examineBackend(ctx, name)...)
	}
	key := finding{What: "OPENAI_API_KEY", OK: true, Detail: "set"}
	if os.Getenv("OPENAI_API_KEY") == "" {
		key.Detail = "not set; needed for api.openai.com alone (name another variable with --api-key-env)"
	}
	return append(append(findings, key), examineTools()...)
}

// examineTools says which tools need something of the run file.
func examineTools() []finding {
	reg, err := run.NewRegistry(run.Default())
	if err != nil {
		return []finding{{What: "tools", Detail: err.Error()}}
	}
	all, err := reg.Select([]string{"all"}, nil)
	if err != nil {
		return []finding{{What: "tools", Detail: err.Error()}}
	}
	lacking := map[finding][]string{}
	for _, tool := range reg.Tools() {
		if why := all.Missing()[tool.Name]; why != "" && !tool.Planned() {
			f := finding{What: "toolset " + tool.Toolset, Detail: why}
			lacking[f] = append(lacking[f], tool.Name)
		}
	}
	var findings []finding
	for f, names := range lacking {
		findings = append(findings, finding{What: f.What, Detail: strings.Join(names, ", ") + ": " + f.Detail})
	}
	slices.SortFunc(findings, func(a, b finding) int { return cmp.Compare(a.What+a.Detail, b.What+b.Detail) })
	return append(findings, finding{What: "toolset vision", OK: true, Detail: "the run file's model takes images (model: {vision: true}), or " +
		"media: {vision_model: NAME} looks at them; video wants the latter"})
}

func examineBackend(ctx context.Context, name string) []finding {
	what, kind := "sandbox "+name, sandbox.Kinds()[name]
	backend, err := run.Backend{Name: name}.Open()
	if err != nil {
		f := finding{What: what, Detail: kind.About + ": " + err.Error()}
		if len(kind.Settings) > 0 {
			f.Fix = "settings: " + describeSettings(kind.Settings)
		}
		return []finding{f}
	}
	defer backend.Close()
	g := backend.Guarantees()
	findings := []finding{{What: what, OK: true, Detail: describeGuarantees(g), Fix: strings.Join(g.Missing, "; ")}}
	// Other backends use an image of the user, from a setting or from each task.
	if !g.FixedSystem {
		return findings
	}
	sb, err := backend.Open(ctx, sandbox.Spec{ID: "doctor"})
	if err != nil {
		return []finding{{What: what, Detail: err.Error()}}
	}
	defer sb.Close()
	for _, program := range []string{"bash", "python3", "git", "espeak-ng"} {
		result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{program, "--version"}}, sandbox.RunOptions{})
		found := finding{What: fmt.Sprintf("  %s in %s", program, name), OK: err == nil && result.Exit.Code == 0, Detail: "found"}
		if !found.OK {
			found.Detail, found.Fix = "not found", "apt-get install "+program
		}
		findings = append(findings, found)
	}
	path, err := browser.Find(ctx, sb)
	found := finding{What: "  chromium in " + name, OK: err == nil, Detail: path}
	if err != nil {
		found.Detail, found.Fix = "not found", err.Error()
	} else {
		found.Fix = run.TooFewBytes(1, run.FreeMemory())
	}
	return append(findings, found)
}

// describeGuarantees says on one line what a backend isolates.
func describeGuarantees(g sandbox.Guarantees) string {
	parts := []string{"level " + string(g.Level)}
	add := func(what string, values map[string]string) {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(values)) {
			all = append(all, key+" "+values[key])
		}
		if len(all) > 0 {
			parts = append(parts, what+": "+strings.Join(all, ", "))
		}
	}
	add("isolation", g.Isolation)
	add("limits", g.Limits)
	parts = append(parts, fmt.Sprintf("network: %v", g.Network))
	if g.Images {
		parts = append(parts, "images")
	}
	if g.Snapshots {
		parts = append(parts, "snapshots")
	}
	if !g.FixedFolder {
		parts = append(parts, "folders not fixed")
	}
	return strings.Join(parts, "; ")
}

func describeSettings(settings []sandbox.Setting) string {
	var all []string
	for _, s := range settings {
		text := s.Name + " (" + s.Help
		if s.Env != "" {
			text += "; $" + s.Env
		}
		all = append(all, text+")")
	}
	return strings.Join(all, ", ")
}
