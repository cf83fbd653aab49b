package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// arguments are a call's arguments on their way from the model's text to the tool.
type arguments struct {
	shown    json.RawMessage // what the trace keeps: repaired and coerced, nothing added
	given    json.RawMessage // what the tool gets: defaults filled in, null of an optional argument left out
	coerced  []string
	repaired bool
}

// maxRepair bounds the text that is repaired. What a model writes itself is far shorter.
const maxRepair = 1 << 20

// maxNesting is how deep arguments may be nested: readers of the trace give up far from where a parser here does.
const maxNesting = 500

// parse turns the model's text into arguments. The text "" is {}. What is no JSON is repaired if, and only if, one
// object comes out that fits the schema; it is never replaced by {}. The arguments are partly filled when problems
// are returned.
func (p *plan) parse(raw string) (arguments, []problem) {
	text := strings.TrimSpace(raw)
	if text == "" {
		text = "{}"
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if syntax := check(text); syntax != nil {
		return p.repair(text, syntax)
	}
	return p.fit(parseValue(text), len(text))
}

// check is json.Valid that says what is wrong.
func check(text string) error {
	if json.Valid([]byte(text)) {
		return nil
	}
	var discard json.RawMessage
	return json.Unmarshal([]byte(text), &discard)
}

func (p *plan) repair(text string, syntax error) (arguments, []problem) {
	broken := problem{Field: "arguments", Expected: "a JSON object", Got: syntax.Error() + ": " + shorten(text, 80)}
	if len(text) > maxRepair {
		return arguments{}, []problem{broken}
	}
	v, err := repair(text, '{', p.root)
	if err != nil {
		broken.Expected += " " + err.Error()
		return arguments{}, []problem{broken}
	}
	args, problems := p.fit(v, len(text))
	args.repaired = true
	if problems != nil {
		// What was guessed and does not fit is no argument that anybody gave.
		return arguments{}, append([]problem{broken}, problems...)
	}
	return args, nil
}

// fit coerces and validates, and writes the arguments down. size is that of the text.
func (p *plan) fit(v value, size int) (arguments, []problem) {
	c := checkers.Get().(*checker)
	defer c.release()
	c.budget = budgetFor(size)
	c.coerceRoot(&v, p.root)
	c.halves(&v)
	c.budget = budgetFor(size)
	var args arguments
	args.coerced = c.coerced
	if v.deeper(maxNesting) {
		return args, []problem{{Field: "$", Expected: fmt.Sprintf("at most %d levels of nesting", maxNesting), Got: "more"}}
	}
	if v.kind == kindObject {
		c.text = v.append(c.text[:0])
		args.shown = bytes.Clone(c.text)
	}
	c.validate(&v, p.root)
	if len(c.problems) == 0 && p.full != nil {
		c.problems = p.judge(&v)
	}
	if len(c.problems) > 0 {
		return args, c.problems
	}
	c.text = v.appendGiven(c.text[:0], p.root)
	if args.given = args.shown; !bytes.Equal(c.text, args.shown) {
		args.given = bytes.Clone(c.text)
	}
	return args, nil
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

// release gives back what is worth keeping: the memory for a path and for a text.
func (c *checker) release() {
	*c = checker{path: c.path[:0], text: c.text[:0]}
	if cap(c.text) <= 64<<10 && cap(c.path) <= 2*maxDepth {
		checkers.Put(c)
	}
}

// appendGiven writes the value as its decoder wants it.
func (v *value) appendGiven(dst []byte, n *node) []byte {
	n = n.chosen(v)
	switch {
	case n == nil:
		return v.append(dst)
	case v.kind == kindNumber && n.types&(typeInteger|typeNumber) == typeInteger && !plainDigits(v.text):
		if digits, ok := integer(v.text); ok { // encoding/json refuses 3.0 and 1e3 for an int
			return append(dst, digits...)
		}
	case v.kind == kindArray:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].appendGiven(dst, n.items)
		}
		return append(dst, ']')
	case v.kind == kindObject:
		return v.appendMembers(dst, n)
	}
	return v.append(dst)
}

func (v *value) appendMembers(dst []byte, n *node) []byte {
	dst = append(dst, '{')
	first := true
	name := func(json string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, json...), ':')
	}
	for i := range v.members {
		m := &v.members[i]
		p := n.property(m.key)
		switch {
		case p == nil && n.closed:
		case p == nil:
			name(m.name)
			dst = m.value.appendGiven(dst, n.extra)
		case absent(&m.value, p):
		default:
			name(m.name)
			dst = m.value.appendGiven(dst, p.node)
		}
	}
	for i := range n.properties {
		p := &n.properties[i]
		if p.node.fallback == "" {
			continue
		}
		if given := v.member(p.name); given == nil || absent(given, p) {
			name(quote(p.name))
			dst = append(dst, p.node.fallback...)
		}
	}
	return append(dst, '}')
}

// absent tells the null that models send for an optional argument when they mean to leave it out.
func absent(v *value, p *property) bool {
	return v.kind == kindNull && !p.required && p.node.types != 0 && !p.node.nullable()
}

// chosen is the branch of a union that the value fits, or the node itself.
func (n *node) chosen(v *value) *node {
	for n != nil && len(n.alternatives) > 0 {
		i := 0
		for i < len(n.alternatives)-1 && !accepts(n.alternatives[i], v) {
			i++
		}
		n = n.alternatives[i]
	}
	return n
}
