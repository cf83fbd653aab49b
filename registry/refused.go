package registry

import (
	"regexp"
	"slices"
	"strings"
)

// aboutSchemas are the words without which a server's complaint is not about the tools that it was shown.
var aboutSchemas = regexp.MustCompile(`schema|grammar|parameters|function|\btools?\[|\$ref`)

// complaints are how servers name what they do not take. The first that fits of those for a quirk is enough.
var complaints = []struct {
	says   *regexp.Regexp
	quirks Quirks
}{
	{regexp.MustCompile(`grammar|\bregex|\bpattern\b`), Quirks{QuirkPattern}},
	{regexp.MustCompile("grammar|[\"'`.]format\\b|\\bformat[\"'` ]+(is |are )?(not|only|must)|unsupported format"), Quirks{QuirkFormat}},
	{regexp.MustCompile(`\benums?\b`), Quirks{QuirkSlashEnums}},
	{regexp.MustCompile(`\benum\b.*(only|string)|unknown name|additionalproperties|(unknown|unsupported|unrecognized|unexpected) (keyword|field|key|property)`),
		Quirks{QuirkKeywords}},
	{regexp.MustCompile(`\bnullable\b|\bnull in\b`), Quirks{QuirkNullable}},
	{regexp.MustCompile(`\$ref|\$defs|\breferences?\b|\bdefinitions\b`), Quirks{QuirkRefs}},
	{regexp.MustCompile(`(any_?of|one_?of|all_?of).*(instead|parent|should be defined|must be defined)`), Quirks{QuirkUnionTypes}},
	{regexp.MustCompile(`any_?of|one_?of|all_?of|\bunions?\b`), Quirks{QuirkUnions}},
}

// QuirksFor are the quirks that a server's refusal of a request speaks of: none when it is not about the schemas of
// tools. One that is, and names no keyword, gets what servers most often stumble over.
func QuirksFor(complaint string) Quirks {
	complaint = strings.ToLower(complaint)
	if !aboutSchemas.MatchString(complaint) {
		return nil
	}
	var found Quirks
	for _, each := range complaints {
		if each.says.MatchString(complaint) {
			found = append(found, each.quirks...)
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
