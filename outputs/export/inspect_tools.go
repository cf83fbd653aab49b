package export

import (
	"encoding/json"
	"slices"
)

var inspectTypes = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

// newInspectTools are ToolInfos. Inspect refuses a whole log over a schema that it has no type for, so they have the plain
// part of each; the sample's metadata has the tools as the model was shown them.
func newInspectTools(tools []json.RawMessage) []object {
	infos := []object{}
	for _, tool := range tools {
		if f, err := functionOf(tool); err == nil && f.Name != "" {
			infos = append(infos, object{{"name", f.Name}, {"description", f.Description}, {"parameters", newInspectParams(f.Parameters)}})
		}
	}
	return infos
}

func newInspectParams(schema json.RawMessage) object {
	var parts struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	properties, required := map[string]object{}, []string{}
	if json.Unmarshal(schema, &parts) == nil {
		for name, schema := range parts.Properties {
			var property map[string]any
			_ = json.Unmarshal(schema, &property) // true and false are schemas too
			kind, _ := property["type"].(string)
			if !slices.Contains(inspectTypes, kind) {
				kind = ""
			}
			description, _ := property["description"].(string)
			properties[name] = object{{"type", some(kind)}, {"description", some(description)}}
		}
		for _, name := range parts.Required {
			if properties[name] != nil {
				required = append(required, name)
			}
		}
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}}
}
