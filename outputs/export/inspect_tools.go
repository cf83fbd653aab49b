package export

import (
	"encoding/json"
	"maps"
	"slices"
)

// inspectTool is a ToolInfo. Inspect refuses a whole log over a schema that it has no type for, so it is told the plain
// part of each; the sample's metadata has the tools as the model was shown them.
type inspectTool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Parameters  inspectParams `json:"parameters"`
}

type inspectParams struct {
	Type                 string                  `json:"type"`
	Properties           map[string]inspectParam `json:"properties"`
	Required             []string                `json:"required"`
	AdditionalProperties bool                    `json:"additionalProperties"`
}

type inspectParam struct {
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
}

var inspectTypes = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

func newInspectTools(tools []json.RawMessage) []inspectTool {
	infos := []inspectTool{}
	for _, tool := range tools {
		if f, err := functionOf(tool); err == nil && f.Name != "" {
			infos = append(infos, inspectTool{f.Name, f.Description, newInspectParams(f.Parameters)})
		}
	}
	return infos
}

func newInspectParams(schema json.RawMessage) inspectParams {
	params := inspectParams{Type: "object", Properties: map[string]inspectParam{}, Required: []string{}}
	var parts struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &parts) != nil {
		return params
	}
	for _, name := range slices.Sorted(maps.Keys(parts.Properties)) {
		var property map[string]any
		_ = json.Unmarshal(parts.Properties[name], &property) // true and false are schemas too
		kind, _ := property["type"].(string)
		if !slices.Contains(inspectTypes, kind) {
			kind = ""
		}
		description, _ := property["description"].(string)
		params.Properties[name] = inspectParam{kind, description}
	}
	for _, name := range parts.Required {
		if _, ok := params.Properties[name]; ok {
			params.Required = append(params.Required, name)
		}
	}
	return params
}
