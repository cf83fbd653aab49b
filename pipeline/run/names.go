package run

import (
	"trajgen/registry"
	"trajgen/tools"
)

// ToolsetNames are the toolsets of a run without plugins, for completions; nil if they cannot be had.
func ToolsetNames() []string {
	reg, err := NewRegistry(Default())
	if err != nil {
		return nil
	}
	var names []string
	for _, set := range reg.Toolsets() {
		names = append(names, set.Name)
	}
	return names
}

// ToolNames are the built-in tools, likewise.
func ToolNames() []string {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		return nil
	}
	var names []string
	for _, tool := range reg.Tools() {
		if !tool.Planned() {
			names = append(names, tool.Name)
		}
	}
	return names
}
