package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"trajgen/registry"
	"trajgen/tools"
)

// NewRegistry is the built-in tools and those of plugins, with the run file's toolsets, shown as its model wants them.
func NewRegistry(f File, plugins ...registry.Tool) (*registry.Registry, error) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		return nil, err
	}
	if reg, err = reg.With(plugins...); err != nil {
		return nil, err
	}
	if reg, err = reg.WithToolsets(f.CustomToolsets); err != nil {
		return nil, err
	}
	return reg.WithEnv(os.LookupEnv).WithQuirks(f.Quirks()).WithBridge(f.ToolSearch), nil
}

// noQuirks is what a run file says of a model that is known for quirks that its server has not.
const noQuirks = "none"

// Quirks are those that the run file names, else those that its model is known for.
func (f File) Quirks() registry.Quirks {
	switch {
	case len(f.SchemaQuirks) == 0:
		var all registry.Quirks
		for _, name := range f.agents() { // all are shown the same
			all = append(all, registry.QuirksOf(name)...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	case slices.Equal(f.SchemaQuirks, []string{noQuirks}):
		return nil
	}
	return registry.Quirks(f.SchemaQuirks)
}

// reasons says why tools are missing, those with the same reason together.
func reasons(missing map[string]string) string {
	tools := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		tools[missing[name]] = append(tools[missing[name]], name)
	}
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(tools)) {
		all = append(all, fmt.Sprintf("%s: %s", strings.Join(tools[reason], ", "), reason))
	}
	return strings.Join(all, "; ")
}
