package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plan is a tool's compiled schema.
type plan struct {
	root *node
	// full judges what node does not know. Only schemas from elsewhere have one: those that we generate consist of
	// keywords that node checks itself, in a tenth of the time.
	full *jsonschema.Schema
}

func compile(schema json.RawMessage, ours bool) (*plan, error) {
	doc, err := decode(schema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("schema is not an object")
	}
	b := builder{root: doc, refs: map[string]*node{}}
	root, err := b.build(doc)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if root.types != typeObject && (root.types != 0 || object["type"] != nil) {
		return nil, errors.New(`schema is not of type "object"`)
	}
	state := map[*node]int{}
	for _, each := range reachable(root, map[*node]bool{}) {
		if err := endless(each, state); err != nil {
			return nil, err
		}
	}
	p := &plan{root: root}
	root.types, root.order = typeObject, []types{typeObject}
	if ours {
		closeObjects(root)
	} else if p.full, err = fullValidator(object); err != nil {
		return nil, err
	}
	return p, nil
}

// endless finds a schema that is its own alternative: walking it would never end. A cycle through properties or items
// is fine, as each of its steps consumes a level of the arguments.
func endless(n *node, state map[*node]int) error {
	const walking, done = 1, 2
	switch state[n] {
	case walking:
		return errors.New("schema refers to itself without end")
	case done:
		return nil
	}
	state[n] = walking
	for _, each := range n.alternatives {
		if err := endless(each, state); err != nil {
			return err
		}
	}
	state[n] = done
	return nil
}

// reachable lists the node and all below it, once each.
func reachable(n *node, seen map[*node]bool) []*node {
	if seen[n] {
		return nil
	}
	seen[n] = true
	all := []*node{n}
	for _, each := range append(n.children(), n.alternatives...) {
		all = append(all, reachable(each, seen)...)
	}
	return all
}

func (n *node) children() []*node {
	var all []*node
	for _, p := range n.properties {
		all = append(all, p.node)
	}
	for _, each := range []*node{n.items, n.extra} {
		if each != nil {
			all = append(all, each)
		}
	}
	return all
}

func closeObjects(n *node) {
	n.closed = n.types == typeObject && n.extra == nil
	for _, each := range n.children() {
		closeObjects(each)
	}
}

// noLoader refuses to fetch: the library's own loader would let a hostile schema read local files.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s, outside itself", url)
}

func fullValidator(doc map[string]any) (*jsonschema.Schema, error) {
	schema, err := compileFull(doc)
	if err != nil && doc["$schema"] != nil {
		// An unknown dialect is no reason to lose a tool.
		doc = maps.Clone(doc)
		delete(doc, "$schema")
		schema, err = compileFull(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema, nil
}

func compileFull(doc map[string]any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "mem:///parameters.json"
	if err := c.AddResource(name, nullableTypes(doc)); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// nullableTypes turns OpenAPI's nullable into JSON Schema, on a copy.
func nullableTypes(schema any) any {
	switch s := schema.(type) {
	case []any:
		all := make([]any, len(s))
		for i := range s {
			all[i] = nullableTypes(s[i])
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(s))
		for key, each := range s {
			if key == "enum" || key == "const" || key == "default" {
				all[key] = each
			} else {
				all[key] = nullableTypes(each)
			}
		}
		if name, ok := s["type"].(string); ok && s["nullable"] == true && name != "null" {
			all["type"] = []any{name, "null"}
		}
		return all
	}
	return schema
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// decode keeps numbers exact.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// jsonOf encodes what was decoded from JSON.
func jsonOf(doc any) string {
	text, err := encode(doc)
	if err != nil {
		return "null"
	}
	return text
}

func valueOf(doc any) value { return parseValue(jsonOf(doc)) }
