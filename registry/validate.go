package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// problem is one thing that a model has to mend.
type problem struct {
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

func (p problem) String() string { return p.Field + ": expected " + p.Expected + ", got " + p.Got }

// maxProblems is what a model can use at once.
const maxProblems = 20

func (c *checker) report(expected, got string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, problem{Field: c.where(), Expected: expected, Got: got})
	}
}

// validate lists everything that is wrong with a value.
func (c *checker) validate(v *value, n *node) {
	if n == nil {
		return
	}
	if c.spent() {
		c.report("simpler arguments", "too many nested alternatives")
		return
	}
	if len(n.alternatives) > 0 {
		for _, branch := range n.alternatives {
			trial := checker{budget: c.budget}
			trial.validate(v, branch)
			c.budget = trial.budget
			if len(trial.problems) == 0 {
				return
			}
		}
		if meant := n.meant(v); meant != nil {
			c.validate(v, meant)
			return
		}
		c.report(n.describe(), v.describe())
		return
	}
	if !n.fits(v) || !n.chooses(v) {
		c.report(n.describe(), v.describe())
		return
	}
	switch v.kind {
	case kindNumber:
		if !n.inRange(v.text) {
			c.report(n.describe(), v.describe())
		}
	case kindString:
		if n.minLength < 0 && n.maxLength < 0 {
			return
		}
		if size := utf8.RuneCountInString(unquote(v.text)); !within(size, n.minLength, n.maxLength) {
			c.report(n.describe(), fmt.Sprintf("%d characters", size))
		}
	case kindArray:
		if !within(len(v.items), n.minItems, n.maxItems) {
			c.report(n.describe(), fmt.Sprintf("%d items", len(v.items)))
		}
		for i := range v.items {
			c.push(step{index: i})
			c.validate(&v.items[i], n.items)
			c.pop()
		}
	case kindObject:
		c.validateMembers(v, n)
	}
}

// meant is the one branch of a union that wants a value of this type, so that the problem is shown where it is.
func (n *node) meant(v *value) *node {
	var found *node
	for _, branch := range n.alternatives {
		if branch.fits(v) {
			if found != nil {
				return nil
			}
			found = branch
		}
	}
	return found
}

func (c *checker) validateMembers(v *value, n *node) {
	for i := range v.members {
		m := &v.members[i]
		below := n.extra
		if p := n.property(m.key); p != nil {
			if absent(&m.value, p) {
				continue
			}
			below = p.node
		} else if n.closed {
			if !c.idle(m, n) {
				c.unknown(m.key, v, n)
			}
			continue
		}
		c.push(step{key: m.key, index: -1})
		c.validate(&m.value, below)
		c.pop()
	}
	for i := range n.properties {
		p := &n.properties[i]
		if p.required && v.member(p.name) == nil {
			c.push(step{key: p.name, index: -1})
			c.report(p.node.describe(), "nothing")
			c.pop()
		}
	}
}

func within(size, low, high int) bool { return size >= low && (high < 0 || size <= high) }

func (n *node) chooses(v *value) bool {
	return len(n.enum) == 0 || slices.Contains(n.enum, v.canonical())
}

func (n *node) inRange(text string) bool {
	if n.min == nil && n.max == nil {
		return true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return f > 0 && n.max == nil || f < 0 && n.min == nil // out of float64's range: an infinity of that sign
	}
	return (n.min == nil || f >= *n.min) && (n.max == nil || f <= *n.max)
}

func accepts(n *node, v *value) bool {
	trial := checker{budget: budgetFor(0)}
	trial.validate(v, n)
	return len(trial.problems) == 0
}

// describe says what would be right, in a model's words.
func (n *node) describe() string {
	if len(n.enum) > 0 {
		return "one of " + shorten(strings.Join(n.enum, ", "), 300)
	}
	if len(n.alternatives) > 0 {
		var all []string
		for _, each := range n.alternatives {
			if len(each.alternatives) == 0 { // one level is enough to read
				all = append(all, each.describe())
			}
		}
		return strings.Join(all, " or ")
	}
	var names []string
	for _, t := range n.order {
		names = append(names, t.name())
	}
	text := strings.Join(names, " or ")
	if text == "" {
		return "any value"
	}
	if n.items != nil && n.items.order != nil && n.types == typeArray {
		text += " of " + n.items.order[0].name()
	}
	format := func(f *float64) string { return strconv.FormatFloat(*f, 'f', -1, 64) }
	switch {
	case n.min != nil && n.max != nil:
		text += " from " + format(n.min) + " to " + format(n.max)
	case n.min != nil:
		text += " of at least " + format(n.min)
	case n.max != nil:
		text += " of at most " + format(n.max)
	}
	return text + sizes(n.minLength, n.maxLength, "characters") + sizes(n.minItems, n.maxItems, "items")
}

func sizes(low, high int, unit string) string {
	switch {
	case low >= 0 && high >= 0:
		return fmt.Sprintf(" of %d to %d %s", low, high, unit)
	case low >= 0:
		return fmt.Sprintf(" of at least %d %s", low, unit)
	case high >= 0:
		return fmt.Sprintf(" of at most %d %s", high, unit)
	}
	return ""
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
	if len(text) <= limit {
		return text
	}
	runes := 0
	for i := range text {
		if runes == limit {
			return text[:i] + "…"
		}
		runes++
	}
	return text
}
