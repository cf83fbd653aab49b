package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/run"
	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// Finding is something that works on this machine, or does not.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Doctor opens every sandbox backend, looks for the programs that tasks usually want inside it, and says what each toolset of a
// run file needs.
func Doctor(ctx context.Context, f run.File) ([]Finding, error) {
	s, err := Examine(f)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, name := range sandbox.Names() {
		findings = append(findings, examineBackend(ctx, name)...)
	}
	return append(findings, s.Findings()...), nil
}

// Findings say what each toolset needs.
func (s Survey) Findings() (all []Finding) {
	for _, of := range s.Toolsets() {
		all = append(all, Finding{What: of.Name, OK: len(of.Lacking) == 0, Detail: strings.Join(append(of.Lacking, of.Keys...), "; ")})
	}
	return all
}

func examineBackend(ctx context.Context, name string) []Finding {
	what, kind := "sandbox "+name, sandbox.Kinds()[name]
	backend, err := run.Backend{Name: name}.Open()
	if err != nil {
		f := Finding{What: what, Detail: kind.About + ": " + err.Error()}
		if len(kind.Settings) > 0 {
			f.Fix = "settings: " + describeSettings(kind.Settings)
		}
		return []Finding{f}
	}
	defer backend.Close()
	g := backend.Guarantees()
	findings := []Finding{{What: what, OK: true, Detail: describeGuarantees(g), Fix: strings.Join(g.Missing, "; ")}}
	// Other backends use an image of the user, from a setting or from each task.
	if !g.FixedSystem {
		return findings
	}
	sb, err := backend.Open(ctx, sandbox.Spec{ID: "doctor"})
	if err != nil {
		return []Finding{{What: what, Detail: err.Error()}}
	}
	defer sb.Close()
	for _, program := range []string{"bash", "python3", "git", "espeak-ng"} {
		result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{program, "--version"}}, sandbox.RunOptions{})
		found := Finding{What: fmt.Sprintf("  %s in %s", program, name), OK: err == nil && result.Exit.Code == 0, Detail: "found"}
		if !found.OK {
			found.Detail, found.Fix = "not found", "apt-get install "+program
		}
		findings = append(findings, found)
	}
	path, err := browser.Find(ctx, sb)
	found := Finding{What: "  chromium in " + name, OK: err == nil, Detail: path}
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
	if g.Services {
		parts = append(parts, "services")
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
