package desk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"trajgen/tools/faults"
)

// Faults are the classes of faults that apply to calls of tools; without names, to those of every tool that can be called here.
func (t *Toolbox) Faults(ctx context.Context, names []string) ([]faults.Line, error) {
	toolset, err := t.Registry.Select([]string{"all"}, nil)
	if err != nil {
		return nil, err
	}
	have := toolset.Names()
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("no tool %q can be called here (have %s)", name, strings.Join(have, ", "))
		}
	}
	lines := []faults.Line{}
	for _, tool := range t.Registry.Tools() {
		if slices.Contains(have, tool.Name) && (len(names) == 0 || slices.Contains(names, tool.Name)) {
			lines = append(lines, faults.Describe(ctx, toolset, tool)...)
		}
	}
	return lines, nil
}
