package registry

import (
	"encoding/json"
	"strconv"
	"strings"
)

// checker walks the arguments along the schema: once to mend types, once to list what is still wrong.
type checker struct {
	coerced  []string
	problems []problem
	path     []step
	text     []byte // scratch
	budget   int
	wrap     bool // lists may be made from single values
}

// budgetFor bounds the steps of a walk. Nested unions are tried branch by branch, each on a copy, so that a hostile
// call could make the walk exponential in its depth; honest arguments need a few steps per value.
func budgetFor(text int) int { return 10_000 + 4*text }

// maxDepth is how deep types are mended. Nobody means more, and a path is written out for each.
const maxDepth = 100

type step struct {
	key   string
	index int // -1 for a key
}

func (c *checker) spent() bool {
	c.budget--
	return c.budget < 0
}

func (c *checker) push(s step) { c.path = append(c.path, s) }
func (c *checker) pop()        { c.path = c.path[:len(c.path)-1] }

// where is the path as a model would write it: edits[0].old.
func (c *checker) where() string {
	var b strings.Builder
	for i, s := range c.path {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	if b.Len() == 0 {
		return "$"
	}
	return b.String()
}

func (c *checker) record() { c.coerced = append(c.coerced, c.where()) }

// coerceRoot mends arguments that are a JSON text in a JSON string, and the null that some servers send for no
// arguments; both are recorded as "$".
func (c *checker) coerceRoot(v *value, n *node) {
	if v.kind == kindNull {
		*v = value{kind: kindObject}
		c.record()
	}
	c.wrap = true
	c.coerce(v, n)
}

// coerce mends the types that models get wrong, in place. It never fails: what it cannot mend stays as it is and is
// left to validation. Nothing is mended that would lose information.
func (c *checker) coerce(v *value, n *node) {
	if n == nil || c.spent() || len(c.path) > maxDepth {
		return
	}
	if v.kind == kindString && n.nullable() && strings.EqualFold(strings.TrimSpace(unquote(v.text)), "null") {
		*v = value{kind: kindNull, text: "null"}
		c.record()
		return
	}
	if len(n.alternatives) > 0 {
		c.coerceUnion(v, n)
		return
	}
	if c.numbered(v, n) {
		*v = text(v.text)
		c.record()
		return
	}
	if !c.convert(v, n) && !c.mend(v, n) && c.wrap && n.types&typeArray != 0 && v.kind != kindNull && !n.fits(v) {
		*v = value{kind: kindArray, items: []value{*v}}
		c.record()
		// A list of lists of lists would take a single value to any depth.
		c.wrap = false
		defer func() { c.wrap = true }()
	}
	switch v.kind {
	case kindArray:
		for i := range v.items {
			c.push(step{index: i})
			c.coerce(&v.items[i], n.items)
			c.pop()
		}
	case kindObject:
		c.rename(v, n)
		for i := range v.members {
			m := &v.members[i]
			c.push(step{key: m.key, index: -1})
			c.coerce(&m.value, n.under(m.key))
			c.pop()
		}
	}
}

// convert tries the node's types in order: the first that the value has, or that its text spells, decides.
func (c *checker) convert(v *value, n *node) bool {
	if v.kind != kindString {
		return false
	}
	for _, t := range n.order {
		if t == typeString {
			return false
		}
		if mended, ok := spelled(unquote(v.text), t); ok {
			*v = mended
			c.record()
			return true
		}
	}
	return false
}

// numbered tells an id that is a name here and that the model counts: 1 for "1".
func (c *checker) numbered(v *value, n *node) bool {
	if v.kind != kindNumber || !plainDigits(v.text) || n.types&(typeString|typeInteger|typeNumber) != typeString {
		return false
	}
	for i := len(c.path) - 1; i >= 0; i-- {
		if c.path[i].index < 0 {
			name := strings.TrimSuffix(c.path[i].key, "s")
			return name == "id" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id")
		}
	}
	return false
}

// mend repairs the text of a list or an object that is no JSON, where the text itself cannot be what is wanted, and when
// the outcome fits.
func (c *checker) mend(v *value, n *node) bool {
	if v.kind != kindString || n.types&typeString != 0 || len(v.text) > maxRepair {
		return false
	}
	said := strings.TrimSpace(unquote(v.text))
	texts := n.items == nil || n.items.types == 0 || n.items.types&typeString != 0
	switch {
	case strings.HasPrefix(said, "{") && n.types&typeObject != 0:
	case strings.HasPrefix(said, "[") && n.types&typeArray != 0 && !texts:
	default:
		return false
	}
	mended, err := repair(said, said[0], n)
	if err != nil {
		return false
	}
	trial := checker{path: c.path, budget: c.budget, wrap: c.wrap}
	tried := mended.clone()
	trial.coerce(&tried, n)
	trial.validate(&tried, n)
	if c.budget = trial.budget; len(trial.problems) > 0 || c.budget <= 0 {
		return false
	}
	*v = mended
	c.record()
	return true
}

// spelled reads a text as a value of the type.
func spelled(text string, t types) (value, bool) {
	switch t {
	case typeInteger:
		digits, ok := integer(text)
		return value{kind: kindNumber, text: digits}, ok
	case typeNumber:
		digits, ok := number(text)
		return value{kind: kindNumber, text: digits}, ok
	case typeBool:
		word := strings.ToLower(strings.TrimSpace(text))
		return value{kind: kindBool, text: word}, word == "true" || word == "false"
	case typeArray, typeObject:
		open, want := byte('['), kindArray
		if t == typeObject {
			open, want = '{', kindObject
		}
		text = strings.TrimSpace(text)
		if text == "" || text[0] != open || !json.Valid([]byte(text)) {
			return value{}, false
		}
		v := parseValue(text)
		return v, v.kind == want
	}
	return value{}, false
}

// coerceUnion takes the first branch that the value fits as it is or after mending. Making a list of a single value
// is a guess, so it comes last.
func (c *checker) coerceUnion(v *value, n *node) {
	for _, wrap := range []bool{false, true} {
		if wrap && !c.wrap {
			return
		}
		for _, branch := range n.alternatives {
			if c.budget -= v.size(); c.budget < 0 {
				return
			}
			trial := checker{path: c.path, budget: c.budget, wrap: wrap}
			mended := v.clone()
			trial.coerce(&mended, branch)
			trial.validate(&mended, branch)
			c.budget = trial.budget
			if len(trial.problems) == 0 && c.budget > 0 {
				*v = mended
				c.coerced = append(c.coerced, trial.coerced...)
				return
			}
		}
	}
}
