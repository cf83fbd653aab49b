package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Toolset is the frozen set of tools that an episode can call. It is immutable and shared by episodes.
type Toolset struct {
	tools   map[string]*Tool  // all that can be called, by name, including the bridge's
	names   []string          // of the tools that are shown, sorted
	missing map[string]string // reasons by name
	homes   map[string]string // toolsets of missing tools
	bare    map[string]string // bare name → name, "" when two tools share it
	schemas []json.RawMessage // of names
	hidden  *catalogue        // nil when every tool is shown
}

// choice is a resolved choice of toolsets: its tools, which never change, and the Toolsets that were made from it, one for each
// state of availability.
type choice struct {
	names  []string          // of tools that can be available, sorted
	never  map[string]string // tools that are not built
	frozen map[string]*Toolset
}

// maxFrozen bounds the cached choices, and the toolsets of each; a distribution draws far fewer, and a check with ever new reasons
// must not fill the memory.
const maxFrozen = 256

// Select freezes the tools of the enabled toolsets without those of the disabled ones, as Resolve lists them, and without those that
// are unavailable now, which Missing lists.
func (r *Registry) Select(ctx context.Context, enabled, disabled []string) (*Toolset, error) {
	t, err := r.choose(ctx, enabled, disabled)
	if err != nil {
		return nil, fmt.Errorf("select tools: %w", err)
	}
	return t, nil
}

func (r *Registry) choose(ctx context.Context, enabled, disabled []string) (*Toolset, error) {
	c, err := r.choice(enabled, disabled)
	if err != nil {
		return nil, err
	}
	missing, err := r.unavailable(ctx, c.names)
	if err != nil {
		return nil, err
	}
	return r.freeze(c, missing)
}

// choice resolves the names, or returns the cached choice.
func (r *Registry) choice(enabled, disabled []string) (*choice, error) {
	if enabled == nil {
		enabled = []string{"all"}
	}
	key := strings.Builder{}
	for _, name := range enabled {
		key.WriteString(strconv.Quote(name))
	}
	key.WriteString(" without ")
	for _, name := range disabled {
		key.WriteString(strconv.Quote(name))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.choices[key.String()]; c != nil {
		return c, nil
	}
	names, err := r.Resolve(enabled, disabled)
	if err != nil {
		return nil, err
	}
	c := &choice{never: map[string]string{}, frozen: map[string]*Toolset{}}
	for _, name := range names {
		if tool := r.tools[name]; tool == nil || tool.planned {
			c.never[name] = notBuilt
		} else {
			c.names = append(c.names, name)
		}
	}
	if r.choices == nil || len(r.choices) >= maxFrozen {
		r.choices = map[string]*choice{}
	}
	r.choices[key.String()] = c
	return c, nil
}

// freeze makes the toolset of a choice without the missing tools, or returns the cached one.
func (r *Registry) freeze(c *choice, missing map[string]string) (*Toolset, error) {
	key := strings.Builder{}
	for _, name := range sortedKeys(missing) {
		key.WriteString(name + "\x00" + missing[name] + "\x00")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := c.frozen[key.String()]; t != nil {
		return t, nil
	}
	t := &Toolset{tools: map[string]*Tool{}, missing: maps.Clone(c.never), homes: map[string]string{}, bare: map[string]string{}}
	maps.Copy(t.missing, missing)
	for name := range t.missing {
		if tool := r.tools[name]; tool != nil {
			t.homes[name] = tool.Toolset
		}
	}
	shown := slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return missing[name] != "" })
	if err := t.add(r, shown); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(t.tools) {
		t.addBare(name)
	}
	for _, name := range sortedKeys(t.missing) {
		t.addBare(name)
	}
	if len(c.frozen) >= maxFrozen {
		clear(c.frozen)
	}
	c.frozen[key.String()] = t
	return t, nil
}

// add adds the tools in their shape for an episode, and shows them or the bridge.
func (t *Toolset) add(r *Registry, names []string) error {
	schemas := map[string]json.RawMessage{}
	have := make([]Tool, len(names))
	for i, name := range names {
		have[i] = *r.tools[name]
	}
	for _, name := range names {
		tool, err := r.tools[name].shaped(names, have)
		if err != nil {
			return err
		}
		t.tools[name] = tool
		schemas[name] = tool.function(r.quirks)
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
	return nil
}

func (t *Toolset) addBare(name string) {
	short := bare(name)
	if _, taken := t.bare[short]; taken {
		name = ""
	}
	t.bare[short] = name
}

// shaped is the tool for an episode with these tools, of these names.
func (t *Tool) shaped(names []string, have []Tool) (*Tool, error) {
	if t.Describe == nil && t.Reshape == nil {
		return t, nil
	}
	own := *t
	if t.Describe != nil {
		own.Description = t.Describe(slices.Clone(have))
	}
	if t.Reshape == nil {
		return &own, nil
	}
	parameters := t.Reshape(slices.Clone(names))
	if parameters == nil {
		return &own, nil
	}
	compact, err := compacted(parameters)
	if err != nil {
		return nil, fmt.Errorf("reshape tool %q: %w", t.Name, err)
	}
	p, err := compile(compact, t.ours, t.args)
	if err != nil {
		return nil, fmt.Errorf("reshape tool %q: %w", t.Name, err)
	}
	own.Parameters, own.plan = compact, func() *plan { return p }
	return &own, nil
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

// Has reports whether the tool of exactly this name can be called, shown or not.
func (t *Toolset) Has(name string) bool { return t.tools[name] != nil }

// Missing are the requested tools that are unavailable, with the reasons.
func (t *Toolset) Missing() map[string]string { return maps.Clone(t.missing) }

// Schemas are the function tools as a model is shown them, sorted by name: compact JSON, the same bytes every time.
func (t *Toolset) Schemas() []json.RawMessage { return slices.Clone(t.schemas) }

// NeedsSandbox reports whether a call of that name, as a model wrote it, may open the episode's sandbox.
func (t *Toolset) NeedsSandbox(name string) bool {
	_, tool, _ := t.lookup(name)
	return tool != nil && !tool.NoSandbox
}

// lookup finds the tool that a model's name means, or why it is missing. An inexact name counts if it differs only in spelling and
// means a single tool.
func (t *Toolset) lookup(name string) (string, *Tool, string) {
	if tool := t.tools[name]; tool != nil {
		return name, tool, ""
	}
	if reason, ok := t.missing[name]; ok {
		return name, nil, reason
	}
	meant := t.meant(name)
	if meant == "" {
		return name, nil, ""
	}
	return meant, t.tools[meant], t.missing[meant]
}
