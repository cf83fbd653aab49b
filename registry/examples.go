package registry

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trajgen/pipeline/where/nearest"
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
	for _, each := range problems {
		name := each.Field
		if i := strings.IndexAny(name, ".["); i > 0 {
			name = name[:i]
		}
		asked[name] = true
		if !knows(p.root, name) {
			asked[nearest.To(name, known(p.root))] = true
		}
	}
	e := exampler{room: maxExample}
	return e.object(p.root, 0, func(name string, required bool) bool { return required || asked[name] })
}

// exampler writes one example.
type exampler struct{ room int }

func (e *exampler) value(s *jsonschema.Schema, depth int) string {
	e.room--
	if s == nil {
		s = new(jsonschema.Schema)
	}
	wanted := types(s)
	switch branches, text := alternatives(s), fallback(s); {
	case s.Ref == nil && len(s.Examples) > 0:
		return jsonOf(s.Examples[0])
	case s.Ref == nil && s.Enum != nil:
		return choices(s)[0]
	case text != "" && text != "null":
		return text
	case wanted == nil && len(branches) > 0 && depth < maxExampleDepth:
		return e.value(branches[0], depth+1)
	case wanted == nil:
		wanted = []string{"string"}
	}
	switch wanted[0] {
	case "null":
		return "null"
	case "boolean":
		return "true"
	case "integer", "number":
		return exampleNumber(s)
	case "array":
		if items(s) == nil || depth > maxExampleDepth {
			return "[]"
		}
		return "[" + e.value(items(s), depth+1) + "]"
	case "object":
		most := shownProperties - len(s.Required)
		return e.object(s, depth, func(_ string, required bool) bool {
			if required {
				return true
			}
			most--
			return most >= 0 && depth < shownProperties
		})
	}
	least := 3
	if s.MinLength != nil {
		least = min(max(least, *s.MinLength), 100)
	}
	return quote(strings.Repeat(".", least))
}

func (e *exampler) object(s *jsonschema.Schema, depth int, shown func(name string, required bool) bool) string {
	var members []string
	for _, name := range known(s) {
		if shown(name, slices.Contains(s.Required, name)) && depth < maxExampleDepth && e.room > 0 {
			members = append(members, quote(name)+":"+e.value(s.Properties[name], depth+1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func exampleNumber(s *jsonschema.Schema) string {
	for _, bound := range []*big.Rat{s.Minimum, s.Maximum} {
		if bound == nil {
			continue
		}
		if f, _ := bound.Float64(); bound == s.Minimum || f < 1 {
			return fmt.Sprint(f)
		}
	}
	return "1"
}
