package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Toolset is the frozen set of tools that an episode is shown. It is immutable and shared by episodes.
type Toolset struct {
	tools   map[string]*Tool // by name
	names   []string
	missing map[string]string
	bare    map[string]string // bare name → name, "" when two tools share it
	schemas []json.RawMessage
}

// notBuilt is why a tool that only the table of toolsets knows is missing.
const notBuilt = "not built into this version"

// maxFrozen bounds the toolsets that are remembered; a distribution draws far fewer different ones.
const maxFrozen = 256

// Select freezes the tools of the enabled toolsets without those of the disabled ones, as Resolve lists them, and
// without those that are unavailable now, which Missing tells.
func (r *Registry) Select(ctx context.Context, enabled, disabled []string) (*Toolset, error) {
	tools, err := r.resolve(enabled, disabled)
	if err != nil {
		return nil, fmt.Errorf("select tools: %w", err)
	}
	exist, planned := r.split(tools)
	missing, err := r.unavailable(ctx, exist)
	if err != nil {
		return nil, fmt.Errorf("select tools: %w", err)
	}
	for _, name := range planned {
		missing[name] = notBuilt
	}
	shown := slices.DeleteFunc(exist, func(name string) bool { return missing[name] != "" })
	return r.freeze(shown, missing), nil
}

// freeze makes the toolset, or finds the one that was made of the same names before.
func (r *Registry) freeze(names []string, missing map[string]string) *Toolset {
	key := strings.Join(names, ",")
	for _, name := range sortedKeys(missing) {
		key += "\x00" + name + "\x00" + missing[name]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.frozen[key]; t != nil {
		return t
	}
	t := &Toolset{tools: map[string]*Tool{}, names: names, missing: missing, bare: map[string]string{}}
	for _, name := range names {
		t.tools[name] = r.tools[name]
		t.schemas = append(t.schemas, r.tools[name].function(names))
		t.addBare(name)
	}
	for _, name := range sortedKeys(missing) {
		t.addBare(name)
	}
	if len(r.frozen) < maxFrozen {
		if r.frozen == nil {
			r.frozen = map[string]*Toolset{}
		}
		r.frozen[key] = t
	}
	return t
}

func (t *Toolset) addBare(name string) {
	short := bare(name)
	if _, taken := t.bare[short]; taken {
		name = ""
	}
	t.bare[short] = name
}

// function is the tool as OpenAI's API takes it.
func (t *Tool) function(names []string) json.RawMessage {
	description := t.Description
	if t.Describe != nil {
		description = t.Describe(slices.Clone(names))
	}
	return json.RawMessage(`{"type":"function","function":{"name":` + quote(t.Name) + `,"description":` +
		quote(description) + `,"parameters":` + string(t.Parameters) + `}}`)
}

// Names lists the tools, sorted.
func (t *Toolset) Names() []string { return slices.Clone(t.names) }

// Missing says which tools were asked for and cannot be had, and why.
func (t *Toolset) Missing() map[string]string { return maps.Clone(t.missing) }

// Schemas are the function tools as a model is shown them, sorted by name: compact JSON, the same bytes every time.
func (t *Toolset) Schemas() []json.RawMessage { return slices.Clone(t.schemas) }

// NeedsSandbox says whether a call of that name, as a model wrote it, may open the episode's sandbox.
func (t *Toolset) NeedsSandbox(name string) bool {
	_, tool, _ := t.lookup(name)
	return tool != nil && !tool.NoSandbox
}

// lookup finds the tool that a model's name means, or why it is missing. A name that is not exact counts when it
// differs in nothing but spelling and means one tool only.
func (t *Toolset) lookup(name string) (string, *Tool, string) {
	if tool := t.tools[name]; tool != nil {
		return name, tool, ""
	}
	if reason, ok := t.missing[name]; ok {
		return name, nil, reason
	}
	meant := t.bare[bare(name)]
	if meant == "" {
		return name, nil, ""
	}
	return meant, t.tools[meant], t.missing[meant]
}
