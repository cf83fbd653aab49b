package registry

import (
	"fmt"
	"strings"
)

// Bounds of an example: values in all, levels, and how many properties of an object are shown if less are required.
const (
	maxExample      = 100
	maxExampleDepth = 8
	shownProperties = 3
)

// example is one short object that shows what is required, and what there were problems with.
func (p *plan) example(problems []problem) string {
	asked := map[string]bool{}
	var known []string
	for _, each := range p.root.properties {
		known = append(known, each.name)
	}
	for _, each := range problems {
		name := each.Field
		if i := strings.IndexAny(name, ".["); i > 0 {
			name = name[:i]
		}
		asked[name] = true
		if p.root.property(name) == nil {
			asked[nearest(name, known)] = true
		}
	}
	e := exampler{room: maxExample}
	return e.object(p.root, 0, func(p *property) bool { return p.required || asked[p.name] })
}

// exampler writes one example.
type exampler struct{ room int }

func (e *exampler) value(n *node, depth int) string {
	e.room--
	if n.example != "" {
		return n.example
	}
	if len(n.enum) > 0 {
		return n.enum[0]
	}
	if n.fallback != "" && n.fallback != "null" {
		return n.fallback
	}
	if n.types == 0 && len(n.alternatives) > 0 && depth < maxExampleDepth {
		return e.value(n.alternatives[0], depth+1)
	}
	first := typeString
	if len(n.order) > 0 {
		first = n.order[0]
	}
	switch first {
	case typeNull:
		return "null"
	case typeBool:
		return "true"
	case typeInteger, typeNumber:
		return exampleNumber(n)
	case typeArray:
		if n.items == nil || depth > maxExampleDepth {
			return "[]"
		}
		return "[" + e.value(n.items, depth+1) + "]"
	case typeObject:
		most := shownProperties
		for i := range n.properties {
			if n.properties[i].required {
				most--
			}
		}
		return e.object(n, depth, func(p *property) bool {
			if p.required {
				return true
			}
			most--
			return most >= 0 && depth < shownProperties
		})
	}
	return quote(strings.Repeat(".", min(max(3, n.minLength), 100)))
}

func (e *exampler) object(n *node, depth int, shown func(p *property) bool) string {
	var members []string
	for i := range n.properties {
		if p := &n.properties[i]; shown(p) && depth < maxExampleDepth && e.room > 0 {
			members = append(members, quote(p.name)+":"+e.value(p.node, depth+1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func exampleNumber(n *node) string {
	switch {
	case n.min != nil:
		return fmt.Sprint(*n.min)
	case n.max != nil && *n.max < 1:
		return fmt.Sprint(*n.max)
	}
	return "1"
}
