package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// coercion changes wrong types and names of arguments to right ones, if no information is lost. It never fails: other values stay
// as they are, and the check reports them.
type coercion struct {
	plan   *plan
	done   []string // what was changed, for the trace
	budget int
	wrap   bool // lists may be made from single values
}

// budgetFor bounds the steps of a walk. Nested unions are tried branch by branch, each on a copy, so that a hostile
// call could make the walk exponential in its depth; honest arguments need a few steps per value.
func budgetFor(text int) int { return 10_000 + 4*text }

// maxDepth bounds the depth of coercion. Real calls are shallower, and each value needs its path.
const maxDepth = 100

// position is where a value stands, as a model would write it: edits[0].old.
type position struct {
	path  string
	key   string // of the member that it is or is in
	depth int
}

func (p position) member(key string) position {
	path := key
	if p.depth > 0 {
		path = p.path + "." + key
	}
	return position{path, key, p.depth + 1}
}

func (p position) item(i int) position {
	return position{fmt.Sprintf("%s[%d]", p.path, i), p.key, p.depth + 1}
}

func (p position) String() string {
	if p.path == "" {
		return "$"
	}
	return p.path
}

func (c *coercion) record(at position) { c.done = append(c.done, at.String()) }

// coerce coerces a value in place.
func (c *coercion) coerce(v *value, s *jsonschema.Schema, at position) {
	if c.budget--; s == nil || c.budget < 0 || at.depth > maxDepth {
		return
	}
	if v.kind == kindString && nullable(s) && strings.EqualFold(strings.TrimSpace(unquote(v.text)), "null") {
		*v = value{kind: kindNull, text: "null"}
		c.record(at)
		return
	}
	if len(alternatives(s)) > 0 {
		c.coerceUnion(v, s, at)
		return
	}
	wanted := types(s)
	if v.counts(wanted, at.key) {
		*v = text(v.text)
		c.record(at)
		return
	}
	if !c.convert(v, wanted, at) && !c.mend(v, s, at) && c.wrap && v.kind != kindNull && slices.Contains(wanted, "array") && !v.isOne(wanted) {
		*v = value{kind: kindArray, items: []value{*v}}
		c.record(at)
		// A list of lists would wrap a single value again and again.
		c.wrap = false
		defer func() { c.wrap = true }()
	}
	switch v.kind {
	case kindArray:
		for i := range v.items {
			c.coerce(&v.items[i], items(s), at.item(i))
		}
	case kindObject:
		c.rename(v, s, at)
		for i := range v.members {
			m := &v.members[i]
			c.coerce(&m.value, under(s, m.key), at.member(m.key))
		}
	}
}

// coerceUnion takes the first branch that the value fits, unchanged or coerced. Making a list of a single value is a guess, so it
// comes last.
func (c *coercion) coerceUnion(v *value, s *jsonschema.Schema, at position) {
	for _, wrap := range []bool{false, true} {
		if wrap && !c.wrap {
			return
		}
		for _, branch := range alternatives(s) {
			if c.budget -= v.size(); c.budget < 0 {
				return
			}
			mended := v.clone()
			if done, ok := c.try(&mended, branch, at, wrap); ok {
				*v = mended
				c.done = append(c.done, done...)
				return
			}
		}
	}
}

// try coerces a value, and returns whether it fits then and what was changed.
func (c *coercion) try(v *value, s *jsonschema.Schema, at position, wrap bool) ([]string, bool) {
	trial := coercion{plan: c.plan, budget: c.budget, wrap: wrap}
	trial.coerce(v, s, at)
	ok := trial.fits(v, s)
	c.budget = trial.budget
	return trial.done, ok && c.budget > 0
}

// convert tries types in order, and takes the first that the value has or that its text can be read as.
func (c *coercion) convert(v *value, wanted []string, at position) bool {
	if v.kind != kindString {
		return false
	}
	for _, each := range wanted {
		if each == "string" {
			return false
		}
		if mended, ok := spelled(unquote(v.text), each); ok {
			*v = mended
			c.record(at)
			return true
		}
	}
	return false
}

// spelled parses a text as a value of the type.
func spelled(text, kind string) (value, bool) {
	text = strings.TrimSpace(text)
	switch kind {
	case "integer":
		digits, ok := integer(text)
		return value{kind: kindNumber, text: digits}, ok
	case "number":
		digits, ok := number(text)
		return value{kind: kindNumber, text: digits}, ok
	case "boolean":
		word := strings.ToLower(text)
		return value{kind: kindBool, text: word}, word == "true" || word == "false"
	case "array", "object":
		open := "["
		if kind == "object" {
			open = "{"
		}
		if !strings.HasPrefix(text, open) || !json.Valid([]byte(text)) {
			return value{}, false
		}
		return parseValue(text), true
	}
	return value{}, false
}

// mend repairs the text of a list or an object that is invalid JSON, if the schema does not accept the text itself and the result
// fits.
func (c *coercion) mend(v *value, s *jsonschema.Schema, at position) bool {
	wanted := types(s)
	if v.kind != kindString || slices.Contains(wanted, "string") || len(v.text) > maxRepair {
		return false
	}
	said := strings.TrimSpace(unquote(v.text))
	of := types(items(s))
	texts := of == nil || slices.Contains(of, "string")
	switch {
	case strings.HasPrefix(said, "{") && slices.Contains(wanted, "object"):
	case strings.HasPrefix(said, "[") && slices.Contains(wanted, "array") && !texts:
	default:
		return false
	}
	mended, err := repaired(said, said[0], s)
	if err != nil {
		return false
	}
	tried := mended.clone()
	if _, ok := c.try(&tried, s, at, c.wrap); !ok {
		return false
	}
	*v = mended
	c.record(at)
	return true
}

// counts reports whether a number stands for an id that is a string here: 1 for "1".
func (v *value) counts(wanted []string, key string) bool {
	if v.kind != kindNumber || !plainDigits(v.text) || !slices.Contains(wanted, "string") ||
		slices.Contains(wanted, "integer") || slices.Contains(wanted, "number") {
		return false
	}
	key = strings.TrimSuffix(key, "s")
	return key == "id" || strings.HasSuffix(key, "_id") || strings.HasSuffix(key, "Id")
}

// isOne reports whether a value has one of these types; an empty list allows any.
func (v *value) isOne(wanted []string) bool {
	if v.kind == kindNumber && slices.Contains(wanted, "integer") && !slices.Contains(wanted, "number") {
		_, whole := integer(v.text)
		return whole || plainDigits(v.text)
	}
	return wanted == nil || slices.Contains(wanted, v.kind.String())
}

// plainDigits matches the integers that every decoder reads.
func plainDigits(text string) bool { return !strings.ContainsAny(text, ".eE") }
