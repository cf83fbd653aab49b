package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Toolset is the frozen set of tools that an episode can call. It is immutable and shared by episodes.
type Toolset struct {
	tools   map[string]*Tool   // all that can be called, by name, including the bridge's
	names   []string           // of the tools that are shown, sorted
	missing map[string]absence // the tools that cannot be called
	bare    map[string]string  // bare name → name, "" when two tools share it
	schemas []json.RawMessage  // of names
	hidden  *catalogue         // nil when every tool is shown
}

// notBuilt is the reason for a missing tool that toolsets name and trajgen does not have.
const notBuilt = "outside of what trajgen is for"

// absence says why a tool cannot be called.
type absence struct{ toolset, reason string }

// frozen caches toolsets, one for each choice of tools.
type frozen struct {
	mu       sync.Mutex // guards toolsets
	toolsets map[string]*Toolset
}

// maxFrozen bounds the cached toolsets; a distribution draws far fewer, and a dataset whose tasks choose must not fill the memory.
const maxFrozen = 1024

// Select freezes the tools of the enabled toolsets without those of the disabled ones, as Resolve lists them, and without those that
// cannot be called, which Missing lists.
func (r *Registry) Select(enabled, disabled []string) (*Toolset, error) {
	names, err := r.named(enabled, disabled)
	if err != nil {
		return nil, fmt.Errorf("select tools: %w", err)
	}
	return r.freeze(names), nil
}

// Pick freezes exactly these tools, as Select does those of toolsets.
func (r *Registry) Pick(names []string) *Toolset { return r.freeze(slices.Compact(sorted(names))) }

// freeze makes the toolset of tools some of which are missing, or returns the cached one.
func (r *Registry) freeze(names []string) *Toolset {
	key := strings.Join(names, " ")
	r.frozen.mu.Lock()
	defer r.frozen.mu.Unlock()
	if t := r.frozen.toolsets[key]; t != nil {
		return t
	}
	t := &Toolset{tools: map[string]*Tool{}, missing: map[string]absence{}, bare: map[string]string{}}
	var shown []string
	for _, name := range names {
		switch tool := r.tools[name]; {
		case tool == nil:
			t.missing[name] = absence{reason: notBuilt}
		case tool.planned:
			t.missing[name] = absence{tool.Toolset, notBuilt}
		case r.lacking[name] != "":
			t.missing[name] = absence{tool.Toolset, r.lacking[name]}
		default:
			shown = append(shown, name)
		}
	}
	t.add(r, shown)
	for _, name := range slices.Concat(sortedKeys(t.tools), sortedKeys(t.missing)) {
		short := bare(name)
		if _, taken := t.bare[short]; taken {
			name = ""
		}
		t.bare[short] = name
	}
	for _, name := range names {
		if tool := r.tools[name]; tool != nil {
			for _, alias := range sortedKeys(tool.Aliases) {
				if _, taken := t.bare[bare(alias)]; !taken {
					t.bare[bare(alias)] = name
				}
			}
		}
	}
	if r.frozen.toolsets == nil || len(r.frozen.toolsets) >= maxFrozen {
		r.frozen.toolsets = map[string]*Toolset{}
	}
	r.frozen.toolsets[key] = t
	return t
}

// add adds the tools, described for the episode, and shows them or the bridge.
func (t *Toolset) add(r *Registry, names []string) {
	schemas := map[string]json.RawMessage{}
	have := make([]Tool, len(names))
	for i, name := range names {
		have[i] = *r.tools[name]
	}
	for _, tool := range have {
		if tool.Describe != nil {
			tool.Description = tool.Describe(slices.Clone(have))
		}
		t.tools[tool.Name] = &tool
		schemas[tool.Name] = tool.function(r.quirks)
	}
	if hidden := r.bridge.hides(names, schemas); hidden != nil {
		t.hidden = newCatalogue(hidden, t.tools, r.quirks)
		for _, name := range hidden {
			delete(schemas, name)
		}
		for _, tool := range r.bridge.tools(len(hidden)) {
			t.tools[tool.Name] = &tool
			schemas[tool.Name] = tool.function(r.quirks)
		}
	}
	t.names = sortedKeys(schemas)
	for _, name := range t.names {
		t.schemas = append(t.schemas, schemas[name])
	}
}

// function is the tool in the form of OpenAI's API.
func (t *Tool) function(quirks Quirks) json.RawMessage {
	return json.RawMessage(`{"type":"function","function":{"name":` + quote(t.Name) + `,"description":` +
		quote(t.Description) + `,"parameters":` + string(t.shown(quirks)) + `}}`)
}

// Names lists the tools that the model is shown, sorted.
func (t *Toolset) Names() []string { return slices.Clone(t.names) }

// Tools lists the tools that can be called, shown or not, sorted by name, without the bridge's own.
func (t *Toolset) Tools() []Tool {
	var all []Tool
	for _, name := range sortedKeys(t.tools) {
		if !slices.Contains(bridgeTools, name) {
			all = append(all, *t.tools[name])
		}
	}
	return all
}

// Toolsets names the toolsets of the tools that can be called, sorted.
func (t *Toolset) Toolsets() (names []string) {
	for _, tool := range t.Tools() {
		names = append(names, tool.Toolset)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Has reports whether the tool of exactly this name can be called, shown or not.
func (t *Toolset) Has(name string) bool { return t.tools[name] != nil }

// Missing are the requested tools that are unavailable, with the reasons.
func (t *Toolset) Missing() map[string]string {
	reasons := map[string]string{}
	for name, why := range t.missing {
		reasons[name] = why.reason
	}
	return reasons
}

// Schemas are the function tools as a model is shown them, sorted by name: compact JSON, the same bytes every time.
func (t *Toolset) Schemas() []json.RawMessage { return slices.Clone(t.schemas) }

// Memory is what the tools need of a sandbox's memory, in bytes, beside the task. They share it.
func (t *Toolset) Memory() int64 {
	var most int64
	for _, tool := range t.tools {
		most = max(most, tool.Memory)
	}
	return most
}

// NeedsSandbox reports whether a call of that name, as a model wrote it, may open the episode's sandbox.
func (t *Toolset) NeedsSandbox(name string) bool {
	_, tool, _ := t.lookup(name)
	return tool != nil && !tool.NoSandbox
}

// lookup finds the tool that a model's name means, or that it is missing. An inexact name counts if it differs only in spelling and
// means a single tool.
func (t *Toolset) lookup(name string) (meant string, tool *Tool, missing bool) {
	if tool = t.tools[name]; tool != nil {
		return name, tool, false
	}
	if _, missing = t.missing[name]; !missing {
		meant = t.meant(name)
	}
	_, missing = t.missing[cmp.Or(meant, name)]
	return cmp.Or(meant, name), t.tools[meant], missing
}
