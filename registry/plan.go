package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plan is a tool's compiled schema.
type plan struct {
	root *jsonschema.Schema
	// schemas are the root and the schemas in it by location, which the library's errors name.
	schemas map[string]*jsonschema.Schema
	// objects are the objects of our own tools, with other names of their members. They allow no other members.
	objects map[*jsonschema.Schema]*otherNames
	ours    bool
}

// compile reads a schema document, a tool's parameters; args is the argument struct that it was made from, nil for a schema that is
// not ours.
func compile(schema json.RawMessage, args reflect.Type) (*plan, error) {
	ours := args != nil
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("schema is not an object")
	}
	if object["type"] == nil {
		object["type"] = "object"
	}
	if !slices.Equal(typesOf(object), []string{"object"}) {
		return nil, errors.New(`schema is not of type "object"`)
	}
	normalize(object, ours)
	root, err := compileDocument(object)
	if err != nil && object["$schema"] != nil {
		delete(object, "$schema") // a tool with an unknown dialect still works
		root, err = compileDocument(object)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	p := &plan{root: root, schemas: map[string]*jsonschema.Schema{}, objects: map[*jsonschema.Schema]*otherNames{}, ours: ours}
	p.list(root)
	walking := map[*jsonschema.Schema]bool{}
	for _, each := range p.schemas {
		if endless(each, walking) {
			return nil, errors.New("schema refers to itself without end")
		}
	}
	if ours {
		p.spell(args, root)
	}
	return p, nil
}

// noLoader refuses to load: with the library's own loader a hostile schema could read local files.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s, outside itself", url)
}

func compileDocument(doc map[string]any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "mem:///parameters.json"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// normalize prepares a schema document for the library. OpenAI's and OpenAPI's nullable becomes a type. The library keeps types as
// an unordered set, so their order, in which coercion tries them, is stored in the title. Objects of our own schemas allow no other
// members: encoding/json ignores the case of keys, so "PATH" would get past the checks of "path".
func normalize(part any, ours bool) {
	list, _ := part.([]any)
	for _, each := range list {
		normalize(each, ours)
	}
	s, ok := part.(map[string]any)
	if !ok {
		return
	}
	delete(s, "title")
	if types := typesOf(s); types != nil {
		list := make([]any, len(types))
		for i, each := range types {
			list[i] = each
		}
		s["type"], s["title"] = list, strings.Join(types, " ")
		if _, open := s["additionalProperties"]; ours && !open && slices.Equal(types, []string{"object"}) {
			s["additionalProperties"] = false
		}
	}
	for key, each := range s {
		switch key {
		case "enum", "const", "default", "examples", "title", "type":
		case "properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas":
			named, _ := each.(map[string]any)
			for _, each := range named {
				normalize(each, ours)
			}
		default:
			normalize(each, ours)
		}
	}
}

// typesOf are the types of a schema document, in its order.
func typesOf(schema map[string]any) []string {
	list, ok := schema["type"].([]any)
	if !ok {
		list = []any{schema["type"]}
	}
	var types []string
	for _, each := range list {
		if name, ok := each.(string); ok && !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	if types != nil && schema["nullable"] == true && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	return types
}

// list records a schema and the schemas in it.
func (p *plan) list(s *jsonschema.Schema) {
	if s == nil || p.schemas[s.Location] != nil {
		return
	}
	p.schemas[s.Location] = s
	if open, said := s.AdditionalProperties.(bool); p.ours && said && !open {
		p.objects[s] = &otherNames{}
	}
	for _, each := range slices.Concat(slices.Collect(maps.Values(s.Properties)), alternatives(s), s.AllOf) {
		p.list(each)
	}
	p.list(items(s))
	p.list(others(s))
}

// endless finds a schema that is its own alternative, which a walk would never leave. A cycle through properties or items is fine,
// as each step consumes a level of the arguments.
func endless(s *jsonschema.Schema, walking map[*jsonschema.Schema]bool) bool {
	if now, seen := walking[s]; seen {
		return now
	}
	walking[s] = true
	if slices.ContainsFunc(alternatives(s), func(each *jsonschema.Schema) bool { return endless(each, walking) }) {
		return true
	}
	walking[s] = false
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// jsonOf encodes a string, or a value that was decoded from JSON.
func jsonOf(doc any) string {
	text, err := encode(doc)
	if err != nil {
		return "null"
	}
	return text
}
