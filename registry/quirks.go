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

// quirks has for each how servers say that they do not take it, and what is left out for it in one place of a schema,
// in this order.
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
	var names []string
	for _, each := range quirks {
		names = append(names, each.name)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range q {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("unknown schema quirk %q%s; there are %s", name, DidYouMean(name, names),
				strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}

func (q Quirks) has(name string) bool { return slices.Contains(q, name) }

// quirky leaves out what the quirks forbid at this place.
func (s *shower) quirky(v *value) {
	for _, each := range quirks {
		if each.leaveOut != nil && s.quirks.has(each.name) {
			each.leaveOut(s, v)
		}
	}
}

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

// aboutSchemas are the words without which a server's complaint is not about the tools that it was shown.
var aboutSchemas = regexp.MustCompile(`schema|grammar|parameters|function|\btools?\[|\$ref`)

// QuirksFor are the quirks that a server's refusal of a request speaks of: none when it is not about the schemas of
// tools. One that is, and names no keyword, gets what servers most often stumble over.
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
	if slices.Contains(found, QuirkUnionTypes) { // which is less than to do without them
		found = slices.DeleteFunc(found, func(name string) bool { return name == QuirkUnions })
	}
	if found == nil && strings.Contains(complaint, "schema") {
		found = Quirks{QuirkPattern, QuirkFormat, QuirkSlashEnums}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Quirks are those that the tools are shown with.
func (r *Registry) Quirks() Quirks { return slices.Clone(r.quirks) }
