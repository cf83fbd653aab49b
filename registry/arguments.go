package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// arguments are a call's arguments on their way from the model's text to the tool.
type arguments struct {
	shown    json.RawMessage // for the trace: repaired and coerced, nothing added
	given    json.RawMessage // for the tool: defaults filled in, null of an optional argument left out
	coerced  []string
	repaired bool
}

// maxRepair bounds the text that is repaired. A model's own text is far shorter.
const maxRepair = 1 << 20

// maxNesting bounds the nesting of arguments, as readers of the trace take less than the parsers here.
const maxNesting = 500

// parse turns the model's text into arguments. The text "" is {}. Invalid JSON is repaired only if the result is one object that
// fits the schema; it is never replaced by {}. With problems, the arguments are partly filled.
// Implied members are added to an object that lacks them.
func (p *plan) parse(raw string, implied ...member) (arguments, []problem) {
	text := strings.TrimSpace(raw)
	if text == "" {
		text = "{}"
	}
	if text == "{}" && p.ours && len(known(p.root)) == 0 { // a tool that has no arguments and gets none
		return arguments{shown: json.RawMessage(text), given: json.RawMessage(text)}, nil
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if err := syntax(text); err != nil {
		if last := raw[len(raw)-1]; last == ' ' || last == '\t' {
			text += " " // marks that more text was to follow
		}
		return p.repair(text, err, implied)
	}
	return p.fit(parseValue(text), len(text), implied)
}

// syntax is json.Valid with an error.
func syntax(text string) error {
	var discard json.RawMessage
	return json.Unmarshal([]byte(text), &discard)
}

func (p *plan) repair(text string, wrong error, implied []member) (arguments, []problem) {
	broken := problem{Field: "arguments", Expected: "a JSON object", Got: wrong.Error() + ": " + shorten(text, 80)}
	if len(text) > maxRepair {
		return arguments{}, []problem{broken}
	}
	v, err := repaired(text, '{', p.root)
	if err != nil {
		broken.Expected += " " + err.Error()
		return arguments{}, []problem{broken}
	}
	args, problems := p.fit(v, len(text), implied)
	args.repaired = true
	if problems != nil {
		// Repaired arguments that do not fit are not what the model meant.
		return arguments{}, append([]problem{broken}, problems...)
	}
	return args, nil
}

// repaired is a value of the schema from invalid JSON. It refuses names that the schema does not have.
func repaired(text string, open byte, s *jsonschema.Schema) (value, error) {
	names := known(s)
	fixed, err := repair(text, open, names)
	if err != nil {
		return value{}, err
	}
	v := parseValue(fixed)
	for _, m := range v.members {
		if len(names) > 0 && others(s) == nil && !slices.Contains(names, m.key) {
			return value{}, fmt.Errorf("without %s, which the tool does not have %w", shorten(m.name, 80), errUnclear)
		}
	}
	return v, nil
}

// fit coerces and checks a value, and encodes the arguments. size is the size of the text.
func (p *plan) fit(v value, size int, implied []member) (arguments, []problem) {
	c := coercion{plan: p, budget: budgetFor(size), wrap: true}
	if v.kind == kindNull { // some servers send it for no arguments
		v = value{kind: kindObject}
		c.record(position{})
	}
	for _, m := range implied {
		if v.kind == kindObject && v.member(m.key) == nil {
			v.members = append(v.members, m)
		}
	}
	c.coerce(&v, p.root, position{})
	args := arguments{coerced: c.done}
	if v.deeper(maxNesting) {
		return args, []problem{{Field: "$", Expected: fmt.Sprintf("at most %d levels of nesting", maxNesting), Got: "more"}}
	}
	c.halves(&v, position{})
	args.coerced = c.done
	if v.kind == kindObject {
		args.shown = v.append(nil)
	}
	p.prune(&v, p.root, true)
	c.budget = budgetFor(size)
	if problems := c.check(&v); problems != nil {
		return args, problems
	}
	c.complete(&v, p.root)
	args.given = v.append(nil)
	return args, nil
}

// complete prepares arguments that fit for their decoder: it fills in defaults, and writes integers as digits, as encoding/json
// refuses 3.0 and 1e3 for an int.
func (c *coercion) complete(v *value, s *jsonschema.Schema) {
	for s != nil && len(alternatives(s)) > 0 {
		s = c.chosen(v, alternatives(s))
	}
	if s == nil {
		return
	}
	switch wanted := types(s); {
	case v.kind == kindNumber && slices.Contains(wanted, "integer") && !slices.Contains(wanted, "number"):
		if digits, ok := integer(v.text); ok && !plainDigits(v.text) {
			v.text = digits
		}
	case v.kind == kindArray:
		for i := range v.items {
			c.complete(&v.items[i], items(s))
		}
	case v.kind == kindObject:
		for i := range v.members {
			m := &v.members[i]
			c.complete(&m.value, under(s, m.key))
		}
		for _, name := range sortedKeys(s.Properties) {
			if text := fallback(s.Properties[name]); text != "" && v.member(name) == nil {
				v.members = append(v.members, member{key: name, name: quote(name), value: parseValue(text)})
			}
		}
	}
}

// chosen is the branch of a union that the value fits.
func (c *coercion) chosen(v *value, branches []*jsonschema.Schema) *jsonschema.Schema {
	for _, each := range branches[:len(branches)-1] {
		if c.fits(v, each) {
			return each
		}
	}
	return branches[len(branches)-1]
}

// fallback is a schema's default as JSON, or "".
func fallback(s *jsonschema.Schema) string {
	if s.Ref != nil || s.Default == nil {
		return ""
	}
	return jsonOf(*s.Default)
}
