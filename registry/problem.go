package registry

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"trajgen/pipeline/where/nearest"
)

// problem is one mistake in arguments that a model has to correct.
type problem struct {
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Got      string `json:"got"`

	order []int // position of the value among the arguments, level by level
}

func (p problem) Error() string { return p.Field + ": expected " + p.Expected + ", got " + p.Got }

// maxProblems is how many problems a model is shown.
const maxProblems = 20

// report words the library's errors.
type report struct {
	plan     *plan
	root     *value
	problems []problem
}

func (r *report) add(e *jsonschema.ValidationError) {
	at, v, order := r.find(e.InstanceLocation)
	s := r.plan.schemas[e.SchemaURL]
	if s == nil {
		s = new(jsonschema.Schema)
	}
	say := func(expected, got string) {
		r.problems = append(r.problems, problem{at.String(), expected, got, order})
	}
	switch k := e.ErrorKind.(type) {
	case *schemakind.Schema, *schemakind.Group, *schemakind.AllOf, *schemakind.Reference:
		r.addAll(e.Causes) // the causes are more specific
	case *schemakind.AnyOf:
		if !r.meant(v, s.AnyOf, e.Causes) {
			say(wants(s), v.describe())
		}
	case *schemakind.OneOf:
		if k.Subschemas != nil {
			say(literally(e), v.describe())
		} else if !r.meant(v, s.OneOf, e.Causes) {
			say(wants(s), v.describe())
		}
	case *schemakind.Type, *schemakind.Enum, *schemakind.Minimum, *schemakind.Maximum:
		say(wants(s), v.describe())
	case *schemakind.MinLength, *schemakind.MaxLength:
		say(wants(s), fmt.Sprintf("%d characters", utf8.RuneCountInString(unquote(v.text))))
	case *schemakind.MinItems, *schemakind.MaxItems:
		say(wants(s), fmt.Sprintf("%d items", len(v.items)))
	case *schemakind.Required:
		order = append(order, len(v.members))
		for _, name := range k.Missing {
			r.problems = append(r.problems, problem{at.member(name).String(), wants(s.Properties[name]), "nothing", order})
		}
	case *schemakind.AdditionalProperties:
		for _, name := range k.Properties {
			i := slices.IndexFunc(v.members, func(m member) bool { return m.key == name })
			r.problems = append(r.problems, problem{at.member(name).String(), instead(name, v, s),
				"an argument that the tool does not have", append(slices.Clone(order), i)})
		}
	case *schemakind.Pattern:
		say("string that matches "+k.Want, v.describe())
	case *schemakind.Format:
		say("string of the format "+k.Want, v.describe())
	case *schemakind.Const:
		say("the value "+jsonOf(k.Want), v.describe())
	default:
		say(literally(e), v.describe())
		r.addAll(e.Causes)
	}
}

func (r *report) addAll(all []*jsonschema.ValidationError) {
	for _, each := range all {
		r.add(each)
	}
}

// meant finds the only branch of a union for a value of this type, so that the problem can be shown within it.
func (r *report) meant(v *value, branches []*jsonschema.Schema, causes []*jsonschema.ValidationError) bool {
	found := -1
	for i, branch := range branches {
		if v.isOne(types(branch)) {
			if found >= 0 {
				return false
			}
			found = i
		}
	}
	if found < 0 || found >= len(causes) {
		return false
	}
	r.add(causes[found])
	return true
}

// find follows the library's path to a value.
func (r *report) find(path []string) (at position, v *value, order []int) {
	v = r.root
	for _, step := range path {
		i := slices.IndexFunc(v.members, func(m member) bool { return m.key == step })
		if v.kind == kindObject && i >= 0 {
			at, v = at.member(step), &v.members[i].value
		} else if i, _ = strconv.Atoi(step); v.kind == kindArray && i < len(v.items) {
			at, v = at.item(i), &v.items[i]
		}
		order = append(order, i)
	}
	return at, v, order
}

// literally is the library's own message, for keywords without one here.
func literally(e *jsonschema.ValidationError) string {
	alone := *e
	alone.Causes = nil
	return "what the schema says: " + alone.BasicOutput().Error.String()
}

// instead lists the existing arguments, and suggests the one that was most likely meant.
func instead(name string, v *value, s *jsonschema.Schema) string {
	names := known(s)
	if len(names) == 0 {
		return "no such argument"
	}
	open := slices.DeleteFunc(slices.Clone(names), func(each string) bool { return v.member(each) != nil })
	expected := "one of " + strings.Join(names, ", ")
	if meant := nearest.To(name, open); meant != "" {
		expected += "; did you mean " + meant + "?"
	}
	return expected
}

// wants says what would be right, in words for a model.
func wants(s *jsonschema.Schema) string {
	if s == nil {
		return "any value"
	}
	if s.Enum != nil && s.Ref == nil {
		return "one of " + shorten(strings.Join(choices(s), ", "), 300)
	}
	if branches := alternatives(s); len(branches) > 0 {
		var all []string
		for _, each := range branches {
			if len(alternatives(each)) == 0 { // one level is enough to read
				all = append(all, wants(each))
			}
		}
		return strings.Join(all, " or ")
	}
	wanted := types(s)
	text := strings.Join(wanted, " or ")
	if text == "" {
		return "any value"
	}
	if of := types(items(s)); of != nil && text == "array" {
		text += " of " + of[0]
	}
	return text + bounds(digits(s.Minimum), digits(s.Maximum), " from ", "") +
		bounds(count(s.MinLength), count(s.MaxLength), " of ", " characters") +
		bounds(count(s.MinItems), count(s.MaxItems), " of ", " items")
}

// bounds says from where to where; "" is without a bound.
func bounds(low, high, from, unit string) string {
	switch {
	case low != "" && high != "":
		return from + low + " to " + high + unit
	case low != "":
		return " of at least " + low + unit
	case high != "":
		return " of at most " + high + unit
	}
	return ""
}

func digits(bound *big.Rat) string {
	if bound == nil {
		return ""
	}
	f, _ := bound.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func count(bound *int) string {
	if bound == nil {
		return ""
	}
	return strconv.Itoa(*bound)
}

// choices are the values of an enum as JSON.
func choices(s *jsonschema.Schema) []string {
	var all []string
	for _, each := range s.Enum.Values {
		all = append(all, jsonOf(each))
	}
	return all
}

// describe shows a value's type and its beginning.
func (v *value) describe() string {
	if v.kind == kindNull {
		return "null"
	}
	return v.kind.String() + " " + shorten(string(v.append(nil)), 80)
}

// shorten cuts a text to a number of characters.
func shorten(text string, limit int) string {
	for at := range text {
		if limit == 0 {
			return text[:at] + "…"
		}
		limit--
	}
	return text
}
