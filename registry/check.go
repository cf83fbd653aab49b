package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// check lists the problems of coerced arguments, in their order. The library finds them, and check puts them into words for a model.
func (c *coercion) check(v *value) []problem {
	root := c.plan.root
	doc := v.document()
	switch {
	case v.kind != kindObject:
		return []problem{{Field: "$", Expected: "object", Got: v.describe()}}
	case hugeNumber(doc):
		return []problem{{Field: "$", Expected: "numbers of a sane size", Got: "one that is longer"}}
	case !c.affords(v, root):
		return []problem{{Field: "$", Expected: "simpler arguments", Got: "too many nested alternatives"}}
	}
	err := root.Validate(doc)
	if err == nil {
		return nil
	}
	r := report{plan: c.plan, root: v}
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		r.add(wrong)
	}
	if r.problems == nil {
		return []problem{{Field: "$", Expected: "what the schema says", Got: err.Error()}}
	}
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return cmp.Or(slices.Compare(a.order, b.order), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Expected, b.Expected))
	})
	return r.problems[:min(len(r.problems), maxProblems)]
}

// fits reports whether a value is valid for a part of the schema.
func (c *coercion) fits(v *value, s *jsonschema.Schema) bool {
	c.plan.prune(v, s, false)
	doc := v.document()
	return c.affords(v, s) && !hugeNumber(doc) && s.Validate(doc) == nil
}

// affords draws the steps that the library may take from the budget: they are exponential in the depth of nested unions.
func (c *coercion) affords(v *value, s *jsonschema.Schema) bool {
	if s == nil {
		return true
	}
	if c.budget--; c.budget < 0 {
		return false
	}
	if !v.isOne(types(s)) {
		return true
	}
	for _, each := range slices.Concat(alternatives(s), s.AllOf) {
		if !c.affords(v, each) {
			return false
		}
	}
	for i := range v.items {
		if !c.affords(&v.items[i], items(s)) {
			return false
		}
	}
	for i := range v.members {
		if m := &v.members[i]; !c.affords(&m.value, under(s, m.key)) {
			return false
		}
	}
	return true
}

// prune removes members that count as left out: from all objects of our own tools, and from the top level of other tools' arguments.
func (p *plan) prune(v *value, s *jsonschema.Schema, top bool) {
	if s == nil {
		return
	}
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return p.drops(&m, s, top) })
	for i := range v.members {
		p.prune(&v.members[i].value, under(s, v.members[i].key), false)
	}
	for i := range v.items {
		p.prune(&v.items[i], items(s), false)
	}
}

// document is the value as the library wants it.
func (v *value) document() any {
	doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(v.append(nil))) // a value is valid JSON
	return doc
}

// drops reports whether a member is kept from the tool: a null for an optional argument, by which models mean to leave it out, or
// one that makes no difference.
func (p *plan) drops(m *member, s *jsonschema.Schema, top bool) bool {
	if names := p.objects[s]; names != nil && !knows(s, m.key) {
		return names.idle(m, top)
	}
	return (top || p.ours) && absent(m, s)
}

func absent(m *member, s *jsonschema.Schema) bool {
	p := s.Properties[m.key]
	return p != nil && m.value.kind == kindNull && !slices.Contains(s.Required, m.key) && types(p) != nil && !nullable(p)
}

// hugeNumber finds numbers that the library would expand into a fraction: 1e1000000000 takes all memory.
func hugeNumber(doc any) bool {
	switch d := doc.(type) {
	case json.Number:
		_, sane := jsonNumber(d.String())
		return !sane
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
