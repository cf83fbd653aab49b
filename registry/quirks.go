package registry

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/where/nearest"
)

// Quirks are the parts of a tool's schema that a model's server does not accept, and that are left out of the schema that the model
// is shown. Arguments are still checked against the whole schema.
type Quirks []string

// All quirks. Where possible, the meaning of a removed keyword goes into the description.
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

// quirks has for each quirk the words of servers that refuse it, and the function that leaves it out at one place of a schema, in
// this order.
var quirks = []struct {
	name     string
	says     *regexp.Regexp
	leaveOut func(s *shower, v *value) // nil where it is not done place by place
}{
	{QuirkRefs, regexp.MustCompile(`\$ref|\$defs|\breferences?\b|\bdefinitions\b`), nil},
	{QuirkUnions, regexp.MustCompile(`any_?of|one_?of|all_?of|\bunions?\b`), (*shower).firstBranches},
	{QuirkUnionTypes, regexp.MustCompile(`(any_?of|one_?of|all_?of).*(instead|parent|should be defined|must be defined)`),
		func(_ *shower, v *value) { v.sinkType() }},
	{QuirkPattern, regexp.MustCompile(`grammar|\bregex|\bpattern\b`), func(_ *shower, v *value) {
		v.hint("Matches the regular expression ", "pattern")
		v.drop("patternProperties")
	}},
	{QuirkFormat, regexp.MustCompile("grammar|[\"'`.]format\\b|\\bformat[\"'` ]+(is |are )?(not|only|must)|unsupported format"),
		func(_ *shower, v *value) { v.hint("Format: ", "format") }},
	{QuirkNullable, regexp.MustCompile(`\bnullable\b|\bnull in\b`), func(_ *shower, v *value) {
		if enum := v.member("enum"); enum != nil {
			enum.items = slices.DeleteFunc(slices.Clone(enum.items), func(each value) bool { return each.kind == kindNull })
		}
		v.drop("nullable")
	}},
	{QuirkSlashEnums, regexp.MustCompile(`\benums?\b`), func(_ *shower, v *value) {
		v.hintEnum(func(each value) bool { return each.kind == kindString && strings.Contains(unquote(each.text), "/") })
	}},
	{QuirkKeywords, regexp.MustCompile(`\benum\b.*(only|string)|unknown name|additionalproperties|(unknown|unsupported|unrecognized|unexpected) (keyword|field|key|property)`),
		func(_ *shower, v *value) {
			v.hintEnum(func(each value) bool { return each.kind != kindString })
			v.hint("The value is ", "const")
			v.members = slices.DeleteFunc(v.members, func(m member) bool { return !slices.Contains(openAPI, m.key) })
		}},
}

// quirksOf maps models to the quirks for which their servers have refused schemas with status 400. The names are those of the
// models, with or without a provider in front.
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

// Validate refuses unknown quirks.
func (q Quirks) Validate() error {
	var names []string
	for _, each := range quirks {
		names = append(names, each.name)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range q {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("unknown schema quirk %q%s; there are %s", name, nearest.DidYouMean(name, names),
				strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}

func (q Quirks) has(name string) bool { return slices.Contains(q, name) }

// firstBranches puts the first branch of each union in its place.
func (s *shower) firstBranches(v *value) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if union := v.member(keyword); union != nil && union.kind == kindArray && len(union.items) > 0 {
			first := union.items[0]
			v.drop(keyword)
			v.under(first)
			s.types(v)
		}
	}
}

// hintEnum moves an enum with such a value into the description.
func (v *value) hintEnum(such func(value) bool) {
	if enum := v.member("enum"); enum != nil && enum.kind == kindArray && slices.ContainsFunc(enum.items, such) {
		v.hint("One of ", "enum")
	}
}

// openAPI are the keywords of its schema object that are understood everywhere, and those of references.
var openAPI = words("type description title properties required items enum nullable anyOf minimum maximum minItems" +
	" maxItems minLength maxLength format pattern $ref $defs definitions")

// aboutSchemas are words of which one is in every complaint about the schemas of tools.
var aboutSchemas = regexp.MustCompile(`schema|grammar|parameters|function|\btools?\[|\$ref`)

// QuirksFor are the quirks that a server's refusal of a request is about; none if it is not about the schemas of tools. For one
// about schemas that names no keyword, it returns the most frequent quirks.
func QuirksFor(complaint string) Quirks {
	complaint = strings.ToLower(complaint)
	if !aboutSchemas.MatchString(complaint) {
		return nil
	}
	var found Quirks
	for _, each := range quirks {
		if each.says.MatchString(complaint) {
			found = append(found, each.name)
		}
	}
	if slices.Contains(found, QuirkUnionTypes) { // a smaller change than removing unions
		found = slices.DeleteFunc(found, func(name string) bool { return name == QuirkUnions })
	}
	if found == nil && strings.Contains(complaint, "schema") {
		found = Quirks{QuirkPattern, QuirkFormat, QuirkSlashEnums}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Quirks are the quirks with which tools are shown.
func (r *Registry) Quirks() Quirks { return slices.Clone(r.quirks) }
