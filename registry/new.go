package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Registry is the set of tools that exist and the toolsets that name them. It is immutable and safe for concurrent
// use; all workers share one. What exists never depends on the machine: availability is asked separately.
type Registry struct {
	tools    map[string]*Tool
	names    []string // of tools, sorted
	toolsets map[string]ToolsetDef
	probes   *probes

	mu     sync.Mutex // guards frozen
	frozen map[string]*Toolset
}

// New makes a registry. A name that comes twice is an error, as one tool would hide the other.
func New(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: map[string]*Tool{}, toolsets: builtinToolsets(), probes: &probes{}}
	var errs []error
	for i := range tools {
		t := &tools[i]
		if t.plan == nil || t.call == nil {
			errs = append(errs, fmt.Errorf("tool %q was not made by Define", t.Name))
			continue
		}
		if other, ok := r.tools[t.Name]; ok {
			errs = append(errs, fmt.Errorf("tool %q is in toolset %q and again in toolset %q", t.Name, other.Toolset, t.Toolset))
			continue
		}
		copied := *t
		r.tools[t.Name] = &copied
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r.names = sortedKeys(r.tools)
	r.addTools()
	return r, nil
}

// addTools adds the registered tools to the toolsets that they name, making those that the table does not have.
func (r *Registry) addTools() {
	for _, name := range r.names {
		set := r.tools[name].Toolset
		def := r.toolsets[set]
		if !slices.Contains(def.Tools, name) {
			def.Tools = append(slices.Clone(def.Tools), name)
		}
		r.toolsets[set] = def
	}
}

// WithToolsets returns a registry that also has a run's own toolsets. It refuses names that exist already, and tools
// and toolsets that do not.
func (r *Registry) WithToolsets(custom map[string]ToolsetDef) (*Registry, error) {
	made := &Registry{tools: r.tools, names: r.names, probes: r.probes, toolsets: map[string]ToolsetDef{}}
	for name, def := range r.toolsets {
		made.toolsets[name] = def
	}
	var errs []error
	for _, name := range sortedKeys(custom) {
		switch _, known := r.toolsets[name]; {
		case name == "" || strings.ContainsAny(name, " \t\n,"):
			errs = append(errs, fmt.Errorf("toolset %q: a name has no white space and no comma", name))
		case known || isEverything(name) || legacy[name] != nil:
			errs = append(errs, fmt.Errorf("toolset %q exists already", name))
		default:
			made.toolsets[name] = custom[name]
		}
	}
	tools := r.knownTools()
	sets := sortedKeys(made.toolsets)
	for _, name := range sortedKeys(custom) {
		for _, tool := range custom[name].Tools {
			if !slices.Contains(tools, tool) {
				errs = append(errs, fmt.Errorf("toolset %q: unknown tool %q%s", name, tool, didYouMean(tool, tools)))
			}
		}
		for _, include := range custom[name].Includes {
			if _, ok := made.toolsets[include]; !ok && !isEverything(include) && legacy[include] == nil {
				errs = append(errs, fmt.Errorf("toolset %q includes the unknown toolset %q%s", name, include, didYouMean(include, sets)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return made, nil
}

// knownTools lists the tools that are registered and those that a toolset names.
func (r *Registry) knownTools() []string {
	all := slices.Clone(r.names)
	for _, def := range r.toolsets {
		all = append(all, def.Tools...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Tools lists the tools that exist, sorted by name.
func (r *Registry) Tools() []Tool {
	all := make([]Tool, len(r.names))
	for i, name := range r.names {
		all[i] = *r.tools[name]
	}
	return all
}

// Tool finds a tool by its exact name.
func (r *Registry) Tool(name string) (Tool, bool) {
	t, ok := r.tools[name]
	if !ok {
		return Tool{}, false
	}
	return *t, true
}
