package registry

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Quirks are what a model's server does not take in a tool's schema, and that is therefore left out of what the model
// is shown. Arguments are checked against the whole schema all the same.
type Quirks []string

// The quirks there are. What a keyword would have told the model moves into the description where words can say it.
const (
	QuirkPattern    = "pattern"     // no pattern: it becomes part of a grammar that cannot express it
	QuirkFormat     = "format"      // no format
	QuirkSlashEnums = "slash_enums" // no enum with a "/" in a value
	QuirkNullable   = "nullable"    // no nullable and no null in an enum
	QuirkUnions     = "unions"      // no anyOf, oneOf and allOf: the first branch stands for all
	QuirkUnionTypes = "union_types" // the type of a union stands in its branches and not beside them
	QuirkRefs       = "refs"        // no $ref: what it refers to is put in its place
	QuirkKeywords   = "keywords"    // nothing but the keywords of OpenAPI's schema object, and enums of strings
)

var quirkNames = []string{QuirkFormat, QuirkKeywords, QuirkNullable, QuirkPattern, QuirkRefs, QuirkSlashEnums,
	QuirkUnionTypes, QuirkUnions}

// quirksOf is which models are known for which quirks, by what they have answered to schemas with status 400. The
// names are those of the models, with or without a provider in front.
var quirksOf = []struct {
	model  *regexp.Regexp
	quirks Quirks
}{
	{regexp.MustCompile(`(^|/)grok`), Quirks{QuirkPattern, QuirkFormat, QuirkSlashEnums, QuirkNullable}},
	{regexp.MustCompile(`(^|/)gemini`), Quirks{QuirkFormat, QuirkRefs, QuirkKeywords}},
	{regexp.MustCompile(`(^|/)(kimi|moonshot)`), Quirks{QuirkRefs, QuirkUnionTypes}},
	{regexp.MustCompile(`\.gguf$|[-_:/]gguf\b`), Quirks{QuirkPattern, QuirkFormat}}, // llama.cpp makes grammars of schemas
}

// QuirksOf are the quirks that a model is known for.
func QuirksOf(model string) Quirks {
	model = strings.ToLower(model)
	for _, known := range quirksOf {
		if known.model.MatchString(model) {
			return slices.Clone(known.quirks)
		}
	}
	return nil
}

// Validate names the quirks that there are not.
func (q Quirks) Validate() error {
	var errs []error
	for _, name := range q {
		if !slices.Contains(quirkNames, name) {
			errs = append(errs, fmt.Errorf("unknown schema quirk %q%s; there are %s", name, DidYouMean(name, quirkNames),
				strings.Join(quirkNames, ", ")))
		}
	}
	return errors.Join(errs...)
}

func (q Quirks) has(name string) bool { return slices.Contains(q, name) }

// quirky leaves out what the quirks forbid at this place.
func (s *shower) quirky(v *value) {
	if s.quirks.has(QuirkUnions) {
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			if union := v.member(keyword); union != nil && union.kind == kindArray && len(union.items) > 0 {
				first := union.items[0]
				v.drop(keyword)
				v.under(first)
				s.types(v)
			}
		}
	}
	if s.quirks.has(QuirkUnionTypes) {
		v.sinkType()
	}
	if s.quirks.has(QuirkPattern) {
		v.hint("Matches the regular expression ", "pattern")
		v.drop("patternProperties")
	}
	if s.quirks.has(QuirkFormat) {
		v.hint("Format: ", "format")
	}
	s.enums(v)
	if s.quirks.has(QuirkNullable) {
		v.drop("nullable")
	}
	if s.quirks.has(QuirkKeywords) {
		v.hint("The value is ", "const")
		v.members = slices.DeleteFunc(v.members, func(m member) bool { return !slices.Contains(openAPI, m.key) })
	}
}

// openAPI are the keywords of its schema object that are understood everywhere, and those of references.
var openAPI = words("type description title properties required items enum nullable anyOf minimum maximum minItems" +
	" maxItems minLength maxLength format pattern $ref $defs definitions")

func (s *shower) enums(v *value) {
	enum := v.member("enum")
	if enum == nil || enum.kind != kindArray {
		return
	}
	if s.quirks.has(QuirkNullable) {
		enum.items = slices.DeleteFunc(slices.Clone(enum.items), func(each value) bool { return each.kind == kindNull })
	}
	slash := func(each value) bool { return each.kind == kindString && strings.Contains(unquote(each.text), "/") }
	other := func(each value) bool { return each.kind != kindString }
	if s.quirks.has(QuirkSlashEnums) && slices.ContainsFunc(enum.items, slash) ||
		s.quirks.has(QuirkKeywords) && slices.ContainsFunc(enum.items, other) {
		v.hint("One of ", "enum")
	}
}
