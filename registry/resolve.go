package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ToolsetDef is a toolset as data: its own tools and the toolsets that it includes.
type ToolsetDef struct {
	Description string   `json:"description,omitempty" yaml:"description,omitempty"`
	Tools       []string `json:"tools,omitempty" yaml:"tools,omitempty"`
	Includes    []string `json:"includes,omitempty" yaml:"includes,omitempty"`
}

// ToolsetInfo describes a toolset. Direct and Resolved are tools that exist; Planned are those that it names, itself
// or through what it includes, and that this version does not have.
type ToolsetInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Direct      []string `json:"direct_tools"`
	Includes    []string `json:"includes"`
	Resolved    []string `json:"resolved_tools"`
	Planned     []string `json:"planned_tools"`
}

// Toolsets lists the toolsets, sorted by name.
func (r *Registry) Toolsets() []ToolsetInfo {
	var all []ToolsetInfo
	for _, name := range sortedKeys(r.toolsets) {
		def := r.toolsets[name]
		tools := map[string]bool{}
		r.collect(name, tools, map[string]bool{})
		info := ToolsetInfo{Name: name, Description: def.Description, Includes: sorted(def.Includes)}
		info.Direct, _ = r.split(setOf(def.Tools))
		info.Resolved, info.Planned = r.split(tools)
		all = append(all, info)
	}
	return all
}

func sorted(names []string) []string {
	out := append([]string{}, names...) // never nil: JSON readers want []
	slices.Sort(out)
	return out
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// split sorts names into the tools that exist and the others.
func (r *Registry) split(tools map[string]bool) (exist, planned []string) {
	exist, planned = []string{}, []string{}
	for _, name := range sortedKeys(tools) {
		if r.tools[name] != nil {
			exist = append(exist, name)
		} else {
			planned = append(planned, name)
		}
	}
	return exist, planned
}

func isEverything(name string) bool { return name == "all" || name == "*" }

// Resolve lists the tools of the enabled toolsets without those of the disabled ones, sorted, whether they are
// available or not. Names are exact; "all" and "*" mean every toolset, and the names of older versions are understood.
// enabled nil is everything, empty is nothing. Tools that this version does not have are left out: Select tells them.
func (r *Registry) Resolve(enabled, disabled []string) ([]string, error) {
	tools, err := r.resolve(enabled, disabled)
	if err != nil {
		return nil, err
	}
	exist, _ := r.split(tools)
	return exist, nil
}

func (r *Registry) resolve(enabled, disabled []string) (map[string]bool, error) {
	if enabled == nil {
		enabled = []string{"all"}
	}
	on, off := map[string]bool{}, map[string]bool{}
	seenOn, seenOff := map[string]bool{}, map[string]bool{}
	var unknown []string
	for _, name := range enabled {
		if !r.collect(name, on, seenOn) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range disabled {
		if !r.collect(name, off, seenOff) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, r.unknownToolsets(unknown)
	}
	for name := range off {
		delete(on, name)
	}
	return on, nil
}

// collect adds a toolset's tools. One seen set for the whole walk ends cycles and visits the tip of a diamond once.
func (r *Registry) collect(name string, tools, seen map[string]bool) bool {
	if isEverything(name) {
		for each := range r.toolsets {
			r.collect(each, tools, seen)
		}
		return true
	}
	def, ok := r.toolsets[name]
	if !ok {
		for _, tool := range legacy[name] {
			tools[tool] = true
		}
		return legacy[name] != nil
	}
	if seen[name] {
		return true
	}
	seen[name] = true
	for _, tool := range def.Tools {
		tools[tool] = true
	}
	for _, include := range def.Includes {
		r.collect(include, tools, seen)
	}
	return true
}

// unknownToolsets names everything that is unknown and what there is.
func (r *Registry) unknownToolsets(names []string) error {
	have := sortedKeys(r.toolsets)
	var each []string
	for _, name := range slices.Compact(sorted(names)) {
		text := fmt.Sprintf("unknown toolset %q", name)
		if tool := r.tools[name]; tool != nil {
			text += fmt.Sprintf(" (a tool of toolset %q)", tool.Toolset)
		} else {
			text += didYouMean(name, have)
		}
		each = append(each, text)
	}
	return errors.New(strings.Join(each, ", ") + "; there are all, " + strings.Join(have, ", "))
}
