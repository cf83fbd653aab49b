package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	if f.Clean != "" || f.Where != "" || f.Mitigate.Retry > 0 {
		return errors.New("faults: clean, where and mitigate are not built; leave them out")
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
