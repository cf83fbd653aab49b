package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/where/nearest"
)

// Registry is the set of existing tools and the toolsets that name them. It is immutable and safe for concurrent use; all workers
// share one. Methods that change it return a copy. The set of tools never depends on the machine.
type Registry struct {
	tools    map[string]*Tool
	defs     toolsetDefs       // the table of toolsets and the run's own
	toolsets toolsetDefs       // defs with the registered tools added
	lacking  map[string]string // tools that the run file declares nothing for, with the reasons
	quirks   Quirks
	bridge   Bridge
	frozen   *frozen // of this copy alone
}

// New makes a registry of tools, as With adds them.
func New(tools ...Tool) (*Registry, error) {
	return (&Registry{tools: map[string]*Tool{}, defs: builtinToolsets()}).With(tools...)
}

// derive copies the registry. The caller calls index if it changes tools or toolsets of the copy.
func (r *Registry) derive() *Registry {
	made := *r
	made.tools, made.frozen = maps.Clone(r.tools), &frozen{}
	return &made
}

// index lists the tools and adds each to the toolset that it names, which it makes if the table does not have it.
func (r *Registry) index() *Registry {
	r.toolsets = maps.Clone(r.defs)
	for _, name := range sortedKeys(r.tools) {
		set := r.tools[name].Toolset
		def := r.toolsets[set]
		if !slices.Contains(def.Tools, name) {
			def.Tools = append(slices.Clone(def.Tools), name)
		}
		r.toolsets[set] = def
	}
	return r
}

// With returns a registry that also has these tools. A tool replaces one of the same name and toolset, or of the same name if both
// toolsets are dynamic. A tool of the same name in another toolset is refused, as is a second one in the same call. A tool with
// Override replaces any, and any tool replaces one that is known by its name alone.
func (r *Registry) With(tools ...Tool) (*Registry, error) {
	made := r.derive()
	var errs []error
	for _, t := range tools {
		if err := made.admit(&t, r.tools[t.Name]); err != nil {
			errs = append(errs, err)
			continue
		}
		made.tools[t.Name] = &t
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return made.index(), nil
}

// admit says why a tool cannot be added. had is the existing tool of its name.
func (r *Registry) admit(t, had *Tool) error {
	switch other := r.tools[t.Name]; {
	case !t.planned && (t.plan == nil || t.bind == nil):
		return fmt.Errorf("tool %q was not made by Define", t.Name)
	case slices.Contains(bridgeTools, t.Name):
		return fmt.Errorf("tool %q: the name belongs to the bridge to tools that are not shown", t.Name)
	case reserved(t.Toolset):
		return fmt.Errorf("tool %q: %q is not a name for a toolset, as it means others", t.Name, t.Toolset)
	case other == nil, other.planned, t.Override:
		return nil
	case other != had:
		return fmt.Errorf("tool %q is there twice, of toolset %q and of toolset %q; name one of them differently, or set override "+
			"on the one that is meant", t.Name, other.Toolset, t.Toolset)
	case other.Toolset == t.Toolset, dynamic(t.Toolset) && dynamic(other.Toolset):
		return nil
	default:
		return fmt.Errorf("tool %q of toolset %q would hide the one of toolset %q; set override if it is meant to",
			t.Name, t.Toolset, other.Toolset)
	}
}

// dynamic reports whether a toolset belongs to a connection of the run.
func dynamic(toolset string) bool {
	return strings.HasPrefix(toolset, "mcp-") || strings.HasPrefix(toolset, "plugin-")
}

// WithToolsets returns a registry that also has a run's own toolsets. It refuses names that exist already, and unknown tools and
// toolsets in them.
func (r *Registry) WithToolsets(custom map[string]ToolsetDef) (*Registry, error) {
	made := r.derive()
	made.defs = maps.Clone(r.defs)
	var errs []error
	for _, name := range sortedKeys(custom) {
		switch {
		case name == "" || strings.ContainsAny(name, " \t\n,"):
			errs = append(errs, fmt.Errorf("toolset %q: a name has no white space and no comma", name))
		case r.toolsets.knows(name):
			errs = append(errs, fmt.Errorf("toolset %q exists already", name))
		default:
			made.defs[name] = custom[name]
		}
	}
	made.index()
	tools := made.knownTools()
	sets := sortedKeys(made.toolsets)
	for _, name := range sortedKeys(custom) {
		for _, tool := range custom[name].Tools {
			if !slices.Contains(tools, tool) {
				errs = append(errs, fmt.Errorf("toolset %q: unknown tool %q%s", name, tool, nearest.DidYouMean(tool, tools)))
			}
		}
		for _, include := range custom[name].Includes {
			if !made.toolsets.knows(include) {
				errs = append(errs, fmt.Errorf("toolset %q includes the unknown toolset %q%s", name, include, nearest.DidYouMean(include, sets)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return made, nil
}

// Lacking returns a registry in which some tools cannot be called, as the run file does not declare what they need; the reasons,
// by tool, say what that is.
func (r *Registry) Lacking(reasons map[string]string) *Registry {
	made := r.derive()
	made.lacking = maps.Clone(r.lacking)
	if made.lacking == nil {
		made.lacking = map[string]string{}
	}
	maps.Copy(made.lacking, reasons)
	return made
}

// WithQuirks returns a registry that shows schemas that a model's server accepts.
func (r *Registry) WithQuirks(quirks Quirks) *Registry {
	made := r.derive()
	made.quirks = slices.Compact(slices.Sorted(slices.Values(quirks)))
	return made
}

// WithBridge returns a registry that may show the bridge instead of tools that are not among the core ones.
func (r *Registry) WithBridge(bridge Bridge) *Registry {
	made := r.derive()
	made.bridge = bridge
	return made
}

// knownTools lists the registered tools and those that a toolset of the table names.
func (r *Registry) knownTools() []string {
	all := sortedKeys(r.tools)
	for _, def := range builtinToolsets() {
		all = append(all, def.Tools...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Tools lists the tools that exist, sorted by name.
func (r *Registry) Tools() []Tool {
	var all []Tool
	for _, name := range sortedKeys(r.tools) {
		all = append(all, *r.tools[name])
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
