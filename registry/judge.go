package registry

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// judge asks the full validator about what node does not know.
func (p *plan) judge(v *value) []problem {
	doc, err := decode(v.append(nil))
	if err != nil {
		return []problem{{Field: "$", Expected: "a JSON object", Got: err.Error()}}
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	for _, each := range p.root.properties {
		if given := v.member(each.name); given != nil && absent(given, &each) {
			delete(object, each.name)
		}
	}
	if hugeNumber(doc) {
		return []problem{{Field: "$", Expected: "numbers of a sane size", Got: "one that is longer"}}
	}
	if err = p.full.Validate(doc); err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok { // the schema itself, e.g. a loop that only these arguments reach
		return []problem{{Field: "$", Expected: "what the schema says", Got: err.Error()}}
	}
	var problems []problem
	for _, unit := range wrong.BasicOutput().Errors {
		if unit.Error != nil && len(problems) < maxProblems {
			problems = append(problems, p.explain(v, unit)...)
		}
	}
	if problems == nil {
		problems = []problem{{Field: "$", Expected: "what the schema says: " + wrong.Error(), Got: v.describe()}}
	}
	return problems
}

// explain says in our words what the full validator found.
func (p *plan) explain(root *value, unit jsonschema.OutputUnit) []problem {
	c := checker{}
	at, n := root, p.root
	_, path, _ := strings.Cut(unit.InstanceLocation, "/")
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch i, err := strconv.Atoi(name); {
		case at.kind == kindObject && at.member(name) != nil:
			c.push(step{key: name, index: -1})
			at, n = at.member(name), n.under(name)
		case at.kind == kindArray && err == nil && i >= 0 && i < len(at.items):
			c.push(step{index: i})
			at, n = &at.items[i], n.items
		}
		if n == nil {
			n = newNode()
		}
	}
	switch k := unit.Error.Kind.(type) {
	case *schemakind.Group, *schemakind.Schema, *schemakind.AllOf, *schemakind.Reference:
		return nil // its parts are reported, too
	case *schemakind.AdditionalProperties:
		for _, name := range k.Properties {
			if at.member(name) != nil {
				c.unknown(name, at, n)
			}
		}
	case *schemakind.Pattern:
		c.report("string that matches "+k.Want, at.describe())
	case *schemakind.Format:
		c.report("string of the format "+k.Want, at.describe())
	case *schemakind.Const:
		c.report("the value "+jsonOf(k.Want), at.describe())
	default:
		c.report("what the schema says: "+unit.Error.String(), at.describe())
	}
	return c.problems
}

// hugeNumber finds numbers that the validator would write out as a rational: 1e1000000000 takes all memory.
func hugeNumber(doc any) bool {
	switch d := doc.(type) {
	case json.Number:
		n, ok := scanNumber(d.String())
		return !ok || len(d) > 1000 || n.exp > 1000 || n.exp < -1000
	case []any:
		return slices.ContainsFunc(d, hugeNumber)
	case map[string]any:
		for _, each := range d {
			if hugeNumber(each) {
				return true
			}
		}
	}
	return false
}
