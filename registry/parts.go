package registry

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// This file has the parts of a compiled schema that coercion, defaults and examples read: the keywords for types, members and
// items. Keywords beside a reference are ignored, as in older drafts.

// typeNames are all types.
var typeNames = words("null boolean integer number string array object")

// types are the types that a value may have, in the schema's order; an empty list allows any.
func types(s *jsonschema.Schema) []string {
	if s == nil || s.Ref != nil || s.Title == "" {
		return nil
	}
	return strings.Fields(s.Title)
}

// alternatives are the schemas of which a value must fit one: the target of a reference, or the branches of a union.
func alternatives(s *jsonschema.Schema) []*jsonschema.Schema {
	if s.Ref != nil {
		return []*jsonschema.Schema{s.Ref}
	}
	return slices.Concat(s.AnyOf, s.OneOf)
}

func nullable(s *jsonschema.Schema) bool {
	return slices.Contains(types(s), "null") || slices.ContainsFunc(alternatives(s), nullable)
}

// items is the schema of a list's items, or nil.
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

// under is the schema of the member with a name, or nil.
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
