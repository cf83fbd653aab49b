package registry

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What coercion, defaults and examples read of a compiled schema: the keywords of type, members and items. Beside a
// reference nothing is read, as older drafts have it.

// typeNames are the types that there are.
var typeNames = words("null boolean integer number string array object")

// types are what a value may be, in the schema's order; none is anything.
func types(s *jsonschema.Schema) []string {
	if s == nil || s.Ref != nil || s.Title == "" {
		return nil
	}
	return strings.Fields(s.Title)
}

// alternatives are the schemas of which a value is to fit one: what a reference leads to, or the branches of a union.
func alternatives(s *jsonschema.Schema) []*jsonschema.Schema {
	if s.Ref != nil {
		return []*jsonschema.Schema{s.Ref}
	}
	return slices.Concat(s.AnyOf, s.OneOf)
}

func nullable(s *jsonschema.Schema) bool {
	return slices.Contains(types(s), "null") || slices.ContainsFunc(alternatives(s), nullable)
}

// items is the schema of a list's items, nil where nothing is said.
func items(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Items2020 != nil {
		return s.Items2020
	}
	each, _ := s.Items.(*jsonschema.Schema)
	return each
}

// others is the schema of members that are not among the properties.
func others(s *jsonschema.Schema) *jsonschema.Schema {
	each, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return each
}

// under is what a member of that name is to be, nil where nothing is said.
func under(s *jsonschema.Schema, name string) *jsonschema.Schema {
	if p, ok := s.Properties[name]; ok {
		return p
	}
	return others(s)
}

// known are the names of members that a schema has, sorted.
func known(s *jsonschema.Schema) []string {
	all := slices.AppendSeq(slices.Clone(s.Required), maps.Keys(s.Properties))
	slices.Sort(all)
	return slices.Compact(all)
}

func knows(s *jsonschema.Schema, name string) bool {
	return s.Properties[name] != nil || slices.Contains(s.Required, name)
}
