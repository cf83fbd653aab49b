package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
)

// ToolsetDef is a toolset as data: its own tools and the toolsets that it includes.
type ToolsetDef struct {
	Description string   `json:"description,omitempty" yaml:"description,omitempty"`
	Tools       []string `json:"tools,omitempty" yaml:"tools,omitempty"`
	Includes    []string `json:"includes,omitempty" yaml:"includes,omitempty"`
}

// ToolsetInfo describes a toolset, regardless of availability.
type ToolsetInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Direct      []string `json:"direct_tools"`
	Includes    []string `json:"includes"`
	Resolved    []string `json:"resolved_tools"`    // its own tools and those of included toolsets
	Outside     bool     `json:"outside,omitempty"` // trajgen has none of its tools
	Count       int      `json:"tool_count"`        // of Resolved
	Composite   bool     `json:"is_composite"`
	RequiresEnv []string `json:"requires_env"` // by any of Resolved
}

// Toolsets describes the toolsets, sorted by name. "all", "*" and the names of older versions are not among them.
func (r *Registry) Toolsets() []ToolsetInfo {
	var all []ToolsetInfo
	for _, name := range sortedKeys(r.toolsets) {
		def, tools := r.toolsets[name], map[string]bool{}
		r.toolsets.collect(name, tools, map[string]bool{})
		named := len(tools)
		maps.DeleteFunc(tools, func(tool string, _ bool) bool { return r.outside(tool) })
		var required []string
		for tool := range tools {
			if t := r.tools[tool]; t != nil {
				required = append(required, t.RequiresEnv...)
			}
		}
		all = append(all, ToolsetInfo{
			Name: name, Description: def.Description, Direct: sorted(def.Tools), Includes: sorted(def.Includes),
			Resolved: sorted(sortedKeys(tools)), Count: len(tools), Composite: len(def.Includes) > 0, Outside: len(tools) < named && len(tools) == 0,
			RequiresEnv: slices.Compact(sorted(required)),
		})
	}
	return all
}

func sorted(names []string) []string {
	out := append([]string{}, names...) // never nil: JSON readers want []
	slices.Sort(out)
	return out
}

func isEverything(name string) bool { return name == "all" || name == "*" }

// reserved reports whether a name has a special meaning, so that no toolset can have it.
func reserved(name string) bool {
	return isEverything(name) || name == episode.NoToolsets || legacy[name] != nil
}

// Promise reports whether a choice of toolsets should give tools: it is not empty and not only NoToolsets.
func Promise(toolsets []string) bool {
	return slices.ContainsFunc(toolsets, func(name string) bool { return name != episode.NoToolsets })
}

// toolsetDefs are toolsets by name.
type toolsetDefs map[string]ToolsetDef

// lookup finds a toolset. The preset of a plugin's platform has the core tools and those of the plugin.
func (t toolsetDefs) lookup(name string) (ToolsetDef, bool) {
	if def, ok := t[name]; ok {
		return def, true
	}
	if platform, ok := strings.CutPrefix(name, "hermes-"); ok {
		if _, ok := t["plugin-"+platform]; ok {
			return ToolsetDef{
				Description: "Preset of " + platform, Tools: coreTools, Includes: []string{"plugin-" + platform},
			}, true
		}
	}
	return ToolsetDef{}, false
}

// knows reports whether collect knows the name.
func (t toolsetDefs) knows(name string) bool {
	_, ok := t.lookup(name)
	return ok || reserved(name)
}

// Resolve lists the tools of the enabled toolsets without those of the disabled ones, sorted. It depends neither on the machine nor
// on the run file: the list includes tools that lack what they need, which Select leaves out, and none that trajgen does not have. Names are exact; "all" and "*" mean every
// toolset, "none" means none, and the names of older versions are understood. A nil enabled means every toolset, an empty one none.
// A disabled name may also be a tool, if no toolset has it.
func (r *Registry) Resolve(enabled, disabled []string) ([]string, error) {
	names, err := r.named(enabled, disabled)
	return slices.DeleteFunc(names, r.outside), err
}

// outside reports whether a tool is one that trajgen knows by its name alone.
func (r *Registry) outside(name string) bool { return r.tools[name] != nil && r.tools[name].planned }

// named is Resolve with the tools that trajgen knows by their names alone.
func (r *Registry) named(enabled, disabled []string) ([]string, error) {
	if enabled == nil {
		enabled = []string{"all"}
	}
	on, off := map[string]bool{}, map[string]bool{}
	seenOn, seenOff := map[string]bool{}, map[string]bool{}
	var unknown []string
	for _, name := range enabled {
		if !r.toolsets.collect(name, on, seenOn) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range disabled {
		if r.toolsets.collect(name, off, seenOff) {
			continue
		}
		if off[name] = true; !slices.Contains(r.knownTools(), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, r.unknownToolsets(unknown)
	}
	maps.DeleteFunc(on, func(name string, _ bool) bool { return off[name] })
	return sorted(sortedKeys(on)), nil
}

// collect adds a toolset's tools. One seen set for the whole walk ends cycles and visits the tip of a diamond once.
func (t toolsetDefs) collect(name string, tools, seen map[string]bool) bool {
	if isEverything(name) {
		for each := range t {
			t.collect(each, tools, seen)
		}
		return true
	}
	def, ok := t.lookup(name)
	if !ok {
		for _, tool := range legacy[name] {
			tools[tool] = true
		}
		return reserved(name)
	}
	if seen[name] {
		return true
	}
	seen[name] = true
	for _, tool := range def.Tools {
		tools[tool] = true
	}
	for _, include := range def.Includes {
		t.collect(include, tools, seen)
	}
	return true
}

// unknownToolsets is the error that lists the unknown names and the existing ones.
func (r *Registry) unknownToolsets(names []string) error {
	have := sortedKeys(r.toolsets)
	var each []string
	for _, name := range slices.Compact(sorted(names)) {
		text := fmt.Sprintf("unknown toolset %q", name)
		if tool := r.tools[name]; tool != nil {
			text += fmt.Sprintf(" (a tool of toolset %q)", tool.Toolset)
		} else {
			text += nearest.DidYouMean(name, have)
		}
		each = append(each, text)
	}
	return errors.New(strings.Join(each, ", ") + "; there are all, " + strings.Join(have, ", "))
}
