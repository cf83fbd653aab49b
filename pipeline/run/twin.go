package run

import (
	"encoding/json"
	"maps"
	"slices"

	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/twin"
)

// recordTwin records the calls of tools in a run directory, with what is said of those who answer.
func (s *services) recordTwin(dir string, resumed bool) error {
	descriptions := map[string]json.RawMessage{}
	if s.plugins != nil {
		of, err := s.plugins.Descriptions()
		if err != nil {
			return err
		}
		maps.Copy(descriptions, of)
	}
	if s.mcp != nil {
		maps.Copy(descriptions, s.mcp.Descriptions())
	}
	return s.twin.Record(dir, resumed, descriptions)
}

// replayed reports whether a recording answers all calls of a toolset that acts outside of the machine.
func replayed(by twin.Settings, toolset string) bool {
	return !slices.ContainsFunc(tools.Builtin(), func(t registry.Tool) bool {
		return t.Toolset == toolset && !by.Answers(t.Name)
	})
}
