package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/plugin"
)

// Tools says which tools episodes may use.
type Tools struct {
	Distribution     string                         `yaml:"distribution" experiment:"always" help:"draw each episode's toolsets from a distribution: a name (trajgen distributions list) or a YAML file"`
	Draw             string                         `yaml:"draw,omitempty" experiment:"given" help:"whose draws of a distribution differ: task (default: all samples of a task have the same toolsets, as groups of GRPO need) or sample (each has its own)"`
	Toolsets         []string                       `yaml:"toolsets" experiment:"always" help:"give every episode these toolsets, without a draw (default: all; none for no tools)"`
	DisabledToolsets []string                       `yaml:"disabled_toolsets" experiment:"always" help:"toolsets or tools that no episode gets"`
	CustomToolsets   map[string]registry.ToolsetDef `yaml:"custom_toolsets,omitempty" experiment:"always"`
	SchemaQuirks     []string                       `yaml:"schema_quirks,omitempty" experiment:"given" help:"what the model's server does not take in tool schemas: format, keywords, nullable, pattern, refs, slash_enums, union_types, unions; or none (default: what models of its name are known for)"`
	SearchSameTask   bool                           `yaml:"session_search_same_task" experiment:"given" help:"let session_search find other samples of the same task, too, and so their answers"`
	Guardrails       string                         `yaml:"guardrails" experiment:"given" help:"calls that lead nowhere: off, record (default: noted in the trace), tell (the model, too) or stop (the episode, in the end)"`
	TurnResultLimit  int                            `yaml:"turn_result_limit" experiment:"in result_limits" help:"bytes of all tool results of one turn; the longest are stored in the sandbox beyond it (default 200000)"`
	ResultLimits     map[string]int                 `yaml:"result_limits,omitempty" experiment:"given"` // tool → bytes of one result, beyond which it is stored in the sandbox
	ToolSearch       registry.Bridge                `yaml:"tool_search,omitempty" experiment:"given"`   // shows the tools beyond the core ones through a search
	Plugins          []plugin.Config                `yaml:"plugins,omitempty" experiment:"given"`
}

// Variables are the variables that plugins get.
func (t Tools) Variables() (all []string) {
	for _, plugin := range t.Plugins {
		all = append(all, plugin.EnvFrom...)
	}
	return all
}

// Validate says what is wrong with the section.
func (t Tools) Validate() error {
	problems := []error{rollout.CheckGuard(t.Guardrails), plugin.Validate(t.Plugins), t.ToolSearch.Validate()}
	for _, name := range slices.Sorted(maps.Keys(t.ResultLimits)) {
		if limit := t.ResultLimits[name]; limit < 1 {
			problems = append(problems, fmt.Errorf("result_limits of %s is %d; over 0", name, limit))
		}
	}
	if !slices.Contains([]string{"", DrawTask, DrawSample}, t.Draw) {
		problems = append(problems, fmt.Errorf("draw is %q; %s or %s", t.Draw, DrawTask, DrawSample))
	}
	if t.Distribution != "" && len(t.Toolsets) > 0 {
		problems = append(problems, errors.New("both toolsets and distribution are given: toolsets are fixed, a distribution draws them; leave one out"))
	}
	return errors.Join(problems...)
}

// fixed are an episode's toolsets when neither its task nor a distribution decides.
func (t Tools) fixed() []string {
	if len(t.Toolsets) > 0 {
		return t.Toolsets
	}
	return []string{"all"}
}

// NewRegistry is the built-in tools and those of plugins and MCP servers, with the run file's toolsets, shown as its model wants them.
func NewRegistry(f File, more ...registry.Tool) (*registry.Registry, error) {
	reg, err := registry.New(outside(&f, tools.Builtin())...)
	if err != nil {
		return nil, err
	}
	if f.Web.Corpus != "" {
		more = append(tools.Corpus(), more...)
	}
	if reg, err = reg.With(more...); err != nil {
		return nil, err
	}
	if reg, err = withMCP(reg, f); err != nil {
		return nil, err
	}
	if reg, err = reg.WithToolsets(f.Tools.CustomToolsets); err != nil {
		return nil, err
	}
	return withoutLacking(&f, reg.WithQuirks(f.Quirks()).WithBridge(f.Tools.ToolSearch)), nil
}

// noQuirks is the value for a model that is known for quirks which this server does not have.
const noQuirks = "none"

// Quirks are the quirks that the run file names, or else those that its models are known for.
func (f File) Quirks() registry.Quirks {
	switch {
	case len(f.Tools.SchemaQuirks) == 0:
		var all registry.Quirks
		for _, name := range f.agents() { // all are shown the same schemas
			all = append(all, registry.QuirksOf(name)...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	case slices.Equal(f.Tools.SchemaQuirks, []string{noQuirks}):
		return nil
	}
	return registry.Quirks(f.Tools.SchemaQuirks)
}

// reasons says why tools are missing, grouped by reason.
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
