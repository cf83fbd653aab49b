package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/rollout"
	"trajgen/tools/faults"
)

// openFaults plants faults at a level into the episodes of the run.
func (s *services) openFaults(context.Context) error {
	f := &s.File.Faults
	if !f.On() {
		return nil
	}
	if f.Twins {
		return errors.New("faults: twins: true is not built; plant at a level, such as level: 0.1")
	}
	if s.Registry != nil {
		if err := s.faultTools(); err != nil {
			return err
		}
	}
	s.made(func(a attempt) []any {
		known := []string{a.task.System}
		for _, m := range a.task.Prompt {
			known = append(known, m.Content)
		}
		for _, name := range slices.Sorted(maps.Keys(a.task.Files)) {
			known = append(known, string(a.task.Files[name]))
		}
		return []any{faults.New(*f, a.ep.Key, known...)}
	})
	return nil
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
