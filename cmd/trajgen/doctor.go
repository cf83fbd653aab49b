package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/pipeline/run"
	"trajgen/pipeline/run/setup"
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
	var path string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what works on this machine, and what to install for the rest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			toolsets, err := examineToolsets(path)
			if err != nil {
				return err
			}
			findings := append(examine(cmd.Context()), toolsets...)
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

// examine opens every sandbox backend, and looks for the programs that tasks usually want inside it.
func examine(ctx context.Context) []finding {
	var findings []finding
	for _, name := range sandbox.Names() {
		findings = append(findings, examineBackend(ctx, name)...)
	}
	return findings
}

// examineToolsets says what each toolset needs.
func examineToolsets(path string) ([]finding, error) {
	file := run.Default()
	if path != "" {
		if err := run.Decode(path, "a run file", &file); err != nil {
			return nil, usage(err)
		}
	}
	s, err := setup.Examine(file)
	if err != nil {
		return nil, usage(err)
	}
	var findings []finding
	for _, of := range s.Toolsets() {
		findings = append(findings, finding{What: of.Name, OK: len(of.Lacking) == 0, Detail: strings.Join(append(of.Lacking, of.Keys...), "; ")})
	}
	return findings, nil
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
