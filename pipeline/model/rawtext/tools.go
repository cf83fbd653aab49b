package rawtext

import (
	"encoding/json"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// tools finds the tools that the model was shown. Their schemas are read when a reply first names one.
type tools struct {
	all  []json.RawMessage
	read map[string]*tool
}

// tool is what a format wants to know of one.
type tool struct {
	Properties map[string]schema `json:"properties"`
	Defs       map[string]schema `json:"$defs"`
	OldDefs    map[string]schema `json:"definitions"`
}

// schema is the part of a JSON Schema that says which types a value can have.
type schema struct {
	Type  any      `json:"type"` // a name or a list of them
	Enum  []any    `json:"enum"`
	Const any      `json:"const"`
	AnyOf []schema `json:"anyOf"`
	OneOf []schema `json:"oneOf"`
	Ref   string   `json:"$ref"`
}

// find returns nil when there is no tool of that name.
func (t *tools) find(name string) *tool {
	if t.read == nil {
		t.read = map[string]*tool{}
		for _, raw := range slices.Backward(t.all) { // of two with one name the first counts
			var shown struct {
				Function struct {
					Name       string `json:"name"`
					Parameters tool   `json:"parameters"`
				} `json:"function"`
			}
			json.Unmarshal(raw, &shown) // what cannot be read gives no types
			t.read[shown.Function.Name] = &shown.Function.Parameters
		}
		delete(t.read, "")
	}
	return t.read[name]
}

func (t *tool) has(name string) bool {
	_, ok := t.Properties[name]
	return ok
}

// types are the names of the types that a parameter can have; none when the schema does not say.
func (t *tool) types(name string) []string {
	if t == nil {
		return nil
	}
	return t.typesOf(t.Properties[name], nil, 0)
}

func (t *tool) typesOf(s schema, types []string, depth int) []string {
	const deepest = 8
	if depth == deepest {
		return types
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		types = t.typesOf(t.Defs[name], types, depth+1)
	} else if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		types = t.typesOf(t.OldDefs[name], types, depth+1)
	}
	switch names := s.Type.(type) {
	case string:
		types = append(types, names)
	case []any:
		for _, name := range names {
			if name, ok := name.(string); ok {
				types = append(types, name)
			}
		}
	case nil:
		if s.Const != nil {
			s.Enum = append(slices.Clip(s.Enum), s.Const)
		}
		for _, value := range s.Enum {
			types = append(types, typeOf(value))
		}
	}
	for _, branch := range append(slices.Clip(s.AnyOf), s.OneOf...) {
		types = t.typesOf(branch, types, depth+1)
	}
	return types
}

// typeOf tells apart what encode does.
func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case nil:
		return "null"
	}
	return "number"
}

// encode writes a value as JSON, by the types that the parameter can have. A string stays the text that it is,
// whatever it looks like; other types are JSON as it was written, or what Python writes for it. Without a type JSON is
// taken for what it says. What fits nothing is a string, about which the dispatch has more to say than a parser.
func (t *tool) encode(name, value string) string {
	types := t.types(name)
	text := strings.TrimSpace(value)
	other := slices.Contains(types, "null") && (text == "null" || text == "None") ||
		slices.Contains(types, "array") && strings.HasPrefix(text, "[") || slices.Contains(types, "object") && isObject(text)
	if slices.Contains(types, "string") && !(other && json.Valid([]byte(text)) || text == "None" && other) {
		return quote(value)
	}
	if json.Valid([]byte(text)) {
		return text
	}
	if python, ok := fromPython(text); ok && (len(types) > 0 || !isName(text)) {
		return python
	}
	return quote(value)
}

// isName tells a single word, which is more of a word than a literal where no type is known.
func isName(text string) bool { return text == "True" || text == "False" || text == "None" }

// quote writes a JSON string and leaves "<" and "&" readable.
func quote(text string) string { return string(episode.MustJSON(text)) }

// pairs are arguments in the order in which they were given; one that is given again takes the place of the first.
type pairs struct {
	keys   []string
	values map[string]string
}

func (p *pairs) has(key string) bool {
	_, ok := p.values[key]
	return ok
}

func (p *pairs) add(key, value string) {
	if !p.has(key) {
		p.keys = append(p.keys, key)
	}
	if p.values == nil {
		p.values = map[string]string{}
	}
	p.values[key] = value
}

func (p *pairs) json() string {
	var written []string
	for _, key := range p.keys {
		written = append(written, quote(key)+": "+p.values[key])
	}
	return "{" + strings.Join(written, ", ") + "}"
}
