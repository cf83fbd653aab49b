package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
)

// demand is what a request wants of tools.
type demand struct {
	required bool
	name     string // of the one tool that must be called
}

// readChoice reads tool_choice; with "none" there are no tools.
func (r *request) readChoice() string {
	if len(r.Tools) == 0 {
		const only = "Invalid value for '%s': '%[1]s' is only allowed when 'tools' are specified."
		switch {
		case !absent(r.ToolChoice):
			return fmt.Sprintf(only, "tool_choice")
		case r.Parallel != nil:
			return fmt.Sprintf(only, "parallel_tool_calls")
		}
		return ""
	}
	switch string(r.ToolChoice) {
	case "", "null", `"auto"`:
	case `"none"`:
		clear(r.tools)
	case `"required"`:
		r.choice.required = true
	default:
		var named function
		if json.Unmarshal(r.ToolChoice, &named) != nil || named.Type != "function" {
			return "Invalid value for 'tool_choice': want none, auto, required or {\"type\":\"function\",\"function\":{\"name\":...}}"
		}
		if r.choice = (demand{required: true, name: named.Function.Name}); !r.tools[r.choice.name] {
			return fmt.Sprintf("Invalid value for 'tool_choice': tool %q is not among 'tools'", r.choice.name)
		}
	}
	return ""
}

// obey makes the turn one that the choice allows. Where the script has no fitting call it makes one up, which takes
// the place of the script's turn: of the first tool, or the one that is named, with the least arguments that its
// schema asks for.
func (r *request) obey(t turn) turn {
	fits := func(name string) bool { return r.choice.name == "" || name == r.choice.name }
	t.calls = slices.DeleteFunc(slices.Clone(t.calls), func(c call) bool { return !fits(c.name) })
	if len(t.calls) == 0 && r.choice.required {
		wanted := r.offered[slices.IndexFunc(r.offered, func(f function) bool { return fits(f.Function.Name) })].Function
		var arguments schema
		json.Unmarshal(wanted.Parameters, &arguments) // as far as it is one
		return turn{reasoning: t.reasoning, calls: []call{{name: wanted.Name, args: literal(arguments.least(0))}}}
	}
	return t
}

// schema is a JSON schema as far as a made-up call looks at it.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Enum       []json.RawMessage `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
}

// smallest are values of the types that are no objects.
var smallest = map[string]any{
	`"string"`: "", `"integer"`: 0, `"number"`: 0, `"boolean"`: false, `"array"`: []any{}, `"null"`: nil,
}

// least is the smallest value of the schema.
func (s schema) least(depth int) any {
	const deepest = 8
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	if value, known := smallest[string(s.Type)]; known {
		return value
	}
	object := map[string]any{}
	if depth < deepest {
		for _, name := range s.Required {
			object[name] = s.Properties[name].least(depth + 1)
		}
	}
	return object
}
