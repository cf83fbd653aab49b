package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/tools/faults"
)

// openFaults plants faults at a level into the episodes of the run.
func (s *services) openFaults(context.Context) error {
	f := &s.File.Faults
	if !f.On() {
		return nil
	}
	if f.Clean != "" {
		reader, err := journal.OpenReader(JournalDir(f.Clean))
		if err != nil {
			return fmt.Errorf("faults.clean: %w", err)
		}
		s.parts.Clean = replayDigest(reader)
		if err := reader.Close(); err != nil {
			return err
		}
	}
	if s.Registry != nil {
		if err := s.faultTools(); err != nil {
			return err
		}
	}
	s.made(func(a attempt) []any {
		known, twin := knownTexts(a.task), a.ep.Twin
		switch {
		case twin != nil:
			one := faults.Single{Place: twin.Place(), Class: twin.Class, Variant: twin.Variant, P: twin.P}
			return []any{faults.NewSingle(*f, a.ep.Key, one, known...)}
		case f.Twins:
			return nil
		}
		return []any{faults.New(*f, a.ep.Key, known...)}
	})
	return nil
}

// knownTexts are what an agent has from the beginning: a wrong value is none of it.
func knownTexts(task *episode.Task) []string {
	known := []string{task.System}
	for _, m := range task.Prompt {
		known = append(known, m.Content)
	}
	for _, name := range slices.Sorted(maps.Keys(task.Files)) {
		known = append(known, string(task.Files[name]))
	}
	return known
}

// faultTools refuses names of tools that do not exist.
func (s *services) faultTools() error {
	var have []string
	for _, t := range s.Registry.Tools() {
		have = append(have, t.Name)
	}
	for _, name := range s.File.Faults.Tools {
		if !slices.Contains(have, name) {
			return fmt.Errorf("faults.tools: no tool %q (have %s)", name, strings.Join(have, ", "))
		}
	}
	return nil
}

// guardrails is the mode of the guardrails. With planted faults they only note: what they say or end would be an answer to a fault.
func guardrails(f *File) string {
	if f.Faults.On() {
		return rollout.GuardRecord
	}
	return f.Tools.Guardrails
}

// sameButFaults refuses clean episodes of another experiment: twins must differ from theirs by the fault alone.
func sameButFaults(clean string, experiment map[string]string) error {
	m, err := ReadManifest(clean)
	if err != nil {
		return fmt.Errorf("faults.clean: %w", err)
	}
	of := func(all map[string]string) map[string]string {
		left := maps.Clone(all)
		maps.DeleteFunc(left, func(name, _ string) bool { return strings.HasPrefix(name, "faults_") || name == "guardrails" })
		return left
	}
	if lines := Difference(of(m.Experiment), of(experiment)); len(lines) > 0 {
		return fmt.Errorf("faults.clean: %s holds another experiment, and twins must differ by their fault alone:\n  %s", clean, strings.Join(lines, "\n  "))
	}
	return nil
}
