package run

import (
	"iter"
	"reflect"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/cron"
	"trajgen/tools/faults"
	"trajgen/tools/home"
	"trajgen/tools/mcp"
	"trajgen/tools/media"
	"trajgen/tools/messages"
	"trajgen/tools/moa"
	"trajgen/tools/rl"
	"trajgen/tools/skills"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// Families are the sections of families of tools. A family is a field here, and a step in services that opens it. What a section
// may say beside Validate() error, it says by these methods:
//
//	Keys() []provider.Key                       the environment variables that its services read, and how to try them
//	Variables() []string                        the environment variables whose values are secrets; those of Keys need not be there
//	Lacking() (what, why string)                a tool, or a toolset, that it declares too little for; "" if it declares all
//	Outside() (toolset, where, version string)  tools that act outside of this machine, and on what; "" if they do not
type Families struct {
	Web      web.Settings      `yaml:"web,omitempty" section:"The web that tools see"`
	Twin     twin.Settings     `yaml:"twin,omitempty" section:"Calls that are recorded and replayed"`
	Browser  browser.Settings  `yaml:"browser,omitempty" section:"Browsers of episodes"`
	MCP      mcp.Settings      `yaml:"mcp,omitempty" section:"MCP servers"`
	Skills   skills.Settings   `yaml:"skills,omitempty" section:"Skills"`
	Media    media.Settings    `yaml:"media,omitempty" section:"Pictures, speech and videos"`
	Cron     cron.Settings     `yaml:"cron,omitempty" section:"Jobs that episodes schedule"`
	RL       rl.Settings       `yaml:"rl,omitempty" section:"Trainings that episodes start"`
	Home     home.Settings     `yaml:"home,omitempty" section:"The smart home that tools act on"`
	Messages messages.Settings `yaml:"messages,omitempty" section:"Where messages go"`
	MOA      moa.Settings      `yaml:"moa,omitempty" section:"Models of mixture_of_agents"`
	Faults   faults.Settings   `yaml:"faults,omitempty" section:"Faults that are planted into calls"`
}

// fieldsOf are the fields of a struct, with those of a struct that has no key of its own in YAML in its place.
func fieldsOf(in reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for about, field := range in.Fields() {
			if !about.Anonymous {
				if !yield(about, field) {
					return
				}
				continue
			}
			for about, field := range fieldsOf(field) {
				if !yield(about, field) {
					return
				}
			}
		}
	}
}

// sections are the sections of a run file that are a T.
func sections[T any](f *File) iter.Seq[T] {
	return func(yield func(T) bool) {
		for about, field := range fieldsOf(reflect.ValueOf(f).Elem()) {
			if about.Tag.Get("section") == "" {
				continue
			}
			if section, ok := field.Addr().Interface().(T); ok && !yield(section) {
				return
			}
		}
	}
}

// withoutLacking is the registry without the tools that sections declare too little for.
func withoutLacking(f *File, reg *registry.Registry) *registry.Registry {
	for section := range sections[interface{ Lacking() (what, why string) }](f) {
		if what, why := section.Lacking(); what != "" {
			reg = without(reg, what, why)
		}
	}
	return reg
}

// without is the registry without a tool, or the tools of a toolset, for a reason.
func without(reg *registry.Registry, what, why string) *registry.Registry {
	lacking := map[string]string{}
	for _, tool := range reg.Tools() {
		if tool.Name == what || tool.Toolset == what {
			lacking[tool.Name] = why
		}
	}
	return reg.Lacking(lacking)
}

// outside says of built-in tools on what they act where the run file decides that. A home and messages that are the episode's own
// state are not outside of it.
func outside(f *File, all []registry.Tool) []registry.Tool {
	for section := range sections[interface {
		Outside() (toolset, where, version string)
	}](f) {
		toolset, where, version := section.Outside()
		for i := range all {
			if t := &all[i]; t.Toolset == toolset && !(f.NoUser && where == messages.Outside) { // which a check of tasks keeps
				t.Outside, t.Version = where, version
			}
		}
	}
	return all
}
