package toolbench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// field is what of a parameter's schema calls are made of.
type field struct {
	Type     any   `json:"type"`
	Enum     []any `json:"enum"`
	Examples []any `json:"examples"`
	Default  any   `json:"default"`
	Minimum  any   `json:"minimum"`
	Maximum  any   `json:"maximum"`
}

// generated makes calls from the tools' schemas: one of examples and defaults, and then one for each unusual value of each argument. Tools
// that would act outside of the sandbox are left out. An unusual value may be refused, and a wrong type must be.
func generated(toolset *registry.Toolset) (cases []Case, err error) {
	for _, tool := range toolset.Tools() {
		if tool.Outside != "" || tool.Runner {
			continue
		}
		var schema struct {
			Properties map[string]field `json:"properties"`
			Required   []string         `json:"required"`
		}
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", tool.Name, err)
		}
		usual := map[string]any{}
		for _, name := range schema.Required {
			usual[name] = schema.Properties[name].usual()
		}
		add := func(what string, arguments map[string]any, want Want) {
			cases = append(cases, Case{
				ID: tool.Name + " " + what, Tool: tool.Name, Want: want,
				Call: registry.Request{ID: "call_0", Name: tool.Name, Arguments: text(arguments)},
			})
		}
		add("as usual", usual, Want{answers: true})
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			of := schema.Properties[name]
			unusual := of.unusual(name)
			for _, what := range slices.Sorted(maps.Keys(unusual)) {
				add(name+" "+what, with(usual, name, unusual[what]), Want{answers: true})
			}
			if of.Type == "string" || of.Type == "integer" || of.Type == "number" || of.Type == "boolean" {
				add(name+" of a wrong type", with(usual, name, map[string]any{"not": []any{of.Type}}), Want{Status: episode.CallInvalidArguments})
			}
		}
	}
	return cases, nil
}

func with(usual map[string]any, name string, value any) map[string]any {
	all := maps.Clone(usual)
	all[name] = value
	return all
}

// usual is a value that a call would have.
func (f field) usual() any {
	switch {
	case len(f.Examples) > 0:
		return f.Examples[0]
	case f.Default != nil:
		return f.Default
	case len(f.Enum) > 0:
		return f.Enum[0]
	case f.Minimum != nil:
		return f.Minimum
	}
	switch f.Type {
	case "integer", "number":
		return 1
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "a"
}

// unusual are values at the edges of what a call may have.
func (f field) unusual(name string) map[string]any {
	all := map[string]any{}
	for i, example := range f.Examples {
		all[fmt.Sprintf("example %d", i+1)] = example
	}
	for what, value := range map[string]any{"by default": f.Default, "least": f.Minimum, "greatest": f.Maximum} {
		if value != nil {
			all[what] = value
		}
	}
	if f.Type != "string" || len(f.Enum) > 0 {
		return all
	}
	all["empty"], all["of 64 KiB"], all["unicode"] = "", strings.Repeat("a", 64<<10), "naïve 北京 🙂 \u202e\u0000"
	if strings.Contains(name, "path") {
		all["missing"], all["climbing"] = "no/such/file", "../../../../etc/passwd"
	}
	return all
}
