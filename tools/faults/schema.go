package faults

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// schemaClasses are those of tools that are no longer what the model was shown.
var schemaClasses = []*class{
	{name: "tool_missing", says: "the tool does not exist any more", loud: true, scope: sameTool, needs: 2, answers: true, applies: always, plant: plantMissing},
	{
		name: "schema_drift", says: "a required parameter has another name; result: a member of the result has", variants: []string{"result"}, loud: true,
		scope: sameTool, answers: true, applies: hasParameter, plant: plantDrift, changes: renamedKey,
	},
}

func plantMissing(s *strike) {
	var gone []string
	for _, f := range s.planter.lasting {
		if f.class == s.fault.class && f.left != 0 {
			gone = append(gone, f.tool)
		}
	}
	s.Planted.Effect = episode.EffectNone
	s.Refuse = s.call.Session.Toolset().Unknown(s.call.Tool.Name, gone...)
}

// schemaOf are the parameters of a tool.
func schemaOf(t *registry.Tool) (schema, properties map[string]any, required []string) {
	_ = json.Unmarshal(t.Parameters, &schema) // which the registry has compiled
	properties, _ = schema["properties"].(map[string]any)
	list, _ := schema["required"].([]any)
	for _, each := range list {
		if name, ok := each.(string); ok && properties[name] != nil {
			required = append(required, name)
		}
	}
	return schema, properties, required
}

// hasParameter reports whether the call has a required parameter by its name.
func hasParameter(t *registry.Tool, call *episode.ToolCall) bool {
	_, _, required := schemaOf(t)
	var raw map[string]json.RawMessage
	return len(required) > 0 && json.Unmarshal([]byte(call.RawArguments), &raw) == nil && raw[required[0]] != nil
}

// synonyms are how other versions of tools name their parameters and results.
var synonyms = map[string]string{
	"path": "target", "command": "script", "query": "search_text", "url": "address", "pattern": "expression", "content": "body", "code": "program",
	"output": "stdout", "matches": "hits", "results": "items",
}

// otherName is a name that is not among those given.
func otherName(name string, taken map[string]any) string {
	other, ok := synonyms[name]
	if !ok {
		other = name + "_value"
	}
	for taken[other] != nil {
		other += "_value"
	}
	return other
}

// plantDrift refuses the first call as a tool would whose parameter is named otherwise. From then on both names fit.
func plantDrift(s *strike) {
	if s.Planted.Variant == "result" {
		s.change()
		return
	}
	schema, properties, required := schemaOf(s.call.Tool)
	if len(required) == 0 {
		return
	}
	was := required[0]
	is := otherName(was, properties)
	if s.fault.renamed != "" {
		s.mend(was, is)
		return
	}
	s.fault.renamed = is
	properties[is] = properties[was]
	delete(properties, was)
	required[0] = is
	schema["properties"], schema["required"], schema["additionalProperties"] = properties, required, false
	text, err := json.Marshal(schema)
	if err != nil {
		return
	}
	now, err := registry.DefineSchema(s.call.Tool.Definition, text, nil)
	if err != nil { // its schema refers to the parameter
		return
	}
	if s.Refuse = now.Refuse(s.call.Trace.RawArguments); s.Refuse != nil {
		s.Planted.Effect = episode.EffectNone
	}
}

// mend gives a call with the new name the old one.
func (s *strike) mend(was, is string) {
	var raw map[string]json.RawMessage
	if !s.call.Refused || json.Unmarshal([]byte(s.call.Trace.RawArguments), &raw) != nil || raw[is] == nil || raw[was] != nil {
		return
	}
	raw[was] = raw[is]
	delete(raw, is)
	text, err := json.Marshal(raw)
	if err != nil {
		return
	}
	s.Arguments = string(text)
	s.Around = func(ctx context.Context, _ *registry.Env, run func(context.Context) (string, error)) (string, error) {
		s.Planted.Effect = episode.EffectDone
		return run(ctx)
	}
}

// renamedKey gives the member of the result that has the content another name.
func renamedKey(s *strike, result string) (string, bool) {
	all := leaves(result)
	taken := map[string]any{}
	for _, l := range all {
		if l.depth == 1 {
			taken[l.key] = true
		}
	}
	at, ok := s.payload(result, `"[`)
	top := slices.IndexFunc(all, func(l leaf) bool { return l.depth == 1 && l.start <= at.start && l.end >= at.end })
	if !ok || top < 0 || all[top].key == "" {
		return "", false
	}
	l := all[top]
	begin := strings.LastIndex(result[:l.start], quoted(l.key))
	if begin < 0 { // it is written with escapes
		return "", false
	}
	is := otherName(l.key, taken)
	s.Planted.Target = &episode.PlantedTarget{Pointer: l.pointer, True: l.key, Wrong: is}
	return result[:begin] + quoted(is) + result[begin+len(quoted(l.key)):], true
}
