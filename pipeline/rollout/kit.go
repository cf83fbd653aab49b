package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/delegate"
)

// kit is what an attempt's model may use: its tools, what these have beside the sandbox, and the session of their calls.
type kit struct {
	*attempt
	registry *registry.Registry // that toolset is from
	toolset  *registry.Toolset
	enabled  []string // the toolsets that it is of
	brought  Brought  // nil without any
	have     []any    // what the tools find beside the sandbox
	skills   Skills   // nil without any
	skillset string   // end of the system message that lists them
	session  *registry.Session
	guard    *registry.Guardrails // nil when they are off
}

// equip freezes what the model will be shown.
func (k *kit) equip(ctx context.Context) error {
	k.skills, k.ep.Skills = nil, nil
	if k.Skills != nil {
		k.skills = k.Skills(k.task, k.ep)
	}
	if err := k.choose(); err != nil {
		return err
	}
	k.have, k.ep.Memory, k.ep.Recalled = nil, nil, ""
	k.skillset = k.introduce()
	if k.toolset.Has(memoryTool) {
		k.ep.Memory = newMemory(k.task)
		k.have = append(k.have, k.ep.Memory)
	}
	if k.task.User != nil {
		var err error
		if k.user, err = newUser(k.attempt); err != nil {
			return err
		}
		k.have = append(k.have, k.user)
	}
	if k.skills != nil {
		if k.have = append(k.have, k.skills); !k.guest {
			k.sandbox.folder = k.skills.Folder()
		}
	}
	if err := k.bring(ctx); err != nil {
		return err
	}
	if k.Services != nil {
		k.have = append(k.have, k.Services(k.task, k.ep, k.progress.inquire)...)
	}
	k.join()
	if k.toolset.Has(delegate.Tool) {
		k.agents = &subagents{attempt: k.attempt}
		k.have = append(k.have, k.agents)
	}
	if k.twin != nil { // before the run's own
		for _, service := range k.have {
			if inner, ok := service.(registry.Twin); ok && k.twin.inner == nil {
				k.twin.inner = inner
			}
		}
		k.have = slices.Insert(k.have, 0, any(k.twin))
	}
	k.start()
	return nil
}

// shared is a service that a subagent has in common with its parent, such as web sites, which are one world for both.
type shared interface{ Join(services []any) }

// join connects a subagent's services with its parent's.
func (k *kit) join() {
	if k.parent == nil {
		return
	}
	for _, service := range k.have {
		if s, ok := service.(shared); ok {
			s.Join(k.parent.kit.have)
		}
	}
}

// choose takes the episode's tools as the model's server takes them.
func (k *kit) choose() error {
	ep := k.ep
	k.registry = k.shown()
	if s := k.progress.next(); s != nil && s.Turn == 0 && !slices.Equal(s.Quirks, k.registry.Quirks()) {
		k.registry = k.registry.WithQuirks(s.Quirks) // which the next request is about
	}
	var err error
	if k.brought != nil {
		if k.registry, err = k.registry.With(k.brought.Tools()...); err != nil {
			return faulty(episode.ToolError, "toolset", err)
		}
	}
	toolset, err := k.selected()
	if err != nil {
		return faulty(episode.ToolError, "toolset", err)
	}
	if len(toolset.Names()) == 0 && registry.Promise(ep.Toolsets) && k.parent == nil {
		// The draw promised tools that are not there: what a model does without them says nothing about it.
		return faulty(episode.ToolError, "no_tools", fmt.Errorf("no tool of the toolsets %v is available", ep.Toolsets))
	}
	k.toolset, ep.Tools = toolset, append([]json.RawMessage{}, toolset.Schemas()...)
	if !k.guest {
		k.sandbox.more = toolset.Memory()
	}
	return nil
}

func (k *kit) selected() (*registry.Toolset, error) {
	if k.parent != nil {
		return k.registry.Pick(k.tools), nil
	}
	enabled, disabled := k.ep.Toolsets, k.disabled()
	if k.Toolsets != nil {
		more, without := k.Toolsets(k.task)
		enabled, disabled = slices.Concat(enabled, more), slices.Concat(disabled, without)
	}
	if k.brought != nil {
		for _, tool := range k.brought.Tools() {
			if !slices.Contains(enabled, tool.Toolset) {
				enabled = append(slices.Clip(enabled), tool.Toolset)
			}
		}
	}
	k.enabled = enabled
	return k.registry.Select(enabled, disabled)
}

// start begins the session of the tools that were chosen.
func (k *kit) start() {
	var hooks []registry.Hook
	if k.Hooks != nil {
		hooks = k.Hooks(k.ep, k.progress.inquire)
	}
	if k.Guardrails != GuardOff {
		k.guard = registry.NewGuardrails()
	}
	var host *registry.Session
	if k.guest {
		host = k.parent.kit.session
	}
	k.session = k.toolset.Session(registry.SessionConfig{
		Sandbox: k.sandbox.open, Now: k.Now, Logger: k.logger, Hooks: hooks, Guardrails: k.guard, Services: k.have,
		Secrets: k.Secrets, Limits: k.Results, Clock: k.clock.acting, Charge: k.clock.charge, Sees: k.Sees, Images: k.Images,
		Host: host, Folder: k.ep.Key.Path,
	})
}

// disabled are the toolsets and tools that the episode does not get.
func (k *kit) disabled() []string {
	if k.skills == nil || k.skills.Has() {
		return k.Disabled
	}
	return append(slices.Clone(k.Disabled), skillsToolset)
}

// introduce is the end of the system message that lists the skills.
func (k *kit) introduce() string {
	if k.skills == nil || !k.skills.Has() || !k.toolset.Has(skillTool) {
		return ""
	}
	return k.skills.Begin(k.toolset.Toolsets())
}
