package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rule is something that a command may do. A rule with conditions is checked for the programs that they name; a rule without is
// reported by the code that follows the line.
type rule struct {
	id      string
	verdict Level
	reason  string
	when    []condition
}

// condition is met by a call of one of the programs, with one of the subcommands if there are any, and with arguments that pass
// the test. The test sees the options and operands after the subcommand.
type condition struct {
	names, words string
	test         test
}

type test interface{ of(c *call) bool }

var (
	ruleByID    = map[string]*rule{}
	rulesFor    = map[string][]asked{} // by program
	sortedNames = append(slices.Collect(maps.Keys(names)), "eval", "sudo")
)

type asked struct {
	id string
	condition
}

func init() {
	for i := range rules {
		r := &rules[i]
		if ruleByID[r.id] != nil {
			panic("two rules are called " + r.id)
		}
		ruleByID[r.id] = r
		for _, when := range r.when {
			for _, name := range strings.Fields(when.names) {
				rulesFor[name] = append(rulesFor[name], asked{r.id, when})
				sortedNames = append(sortedNames, name)
			}
		}
	}
	slices.Sort(sortedNames)
	sortedNames = slices.Compact(sortedNames)
}

// judge checks the rules of this program.
func (c *call) judge() {
	if len(rulesFor[c.name]) == 0 {
		return
	}
	whole := *c
	whole.line = c.name + "\n" + strings.Join(c.args, "\n")
	verb, rest := c.sub()
	told := whole
	told.args = rest
	for _, rule := range rulesFor[c.name] {
		if rule.words == "" && rule.test.of(&whole) || slices.Contains(strings.Fields(rule.words), verb) && rule.test.of(&told) {
			c.j.report(rule.id)
		}
	}
}

// Tests are data, so that the table of rules costs nothing until a command is judged.

// always holds except for a program that only prints its help or version.
type always struct{}

func (always) of(c *call) bool {
	return !hasFlag(c.args, "", "help", "version") && !(len(c.args) == 1 && (c.args[0] == "-h" || c.args[0] == "-V"))
}

// flag holds when an option is given: one of the letters in its first element, or one of the long names in the others.
type flag []string

func (f flag) of(c *call) bool { return hasFlag(c.args, f[0], f[1:]...) }

// word holds when an argument is one of some words.
type word []string

func (w word) of(c *call) bool {
	return slices.ContainsFunc(c.args, func(arg string) bool { return slices.Contains(w, arg) })
}

// line holds when a pattern matches the program and its arguments, one a line.
type line string

func (l line) of(c *call) bool { return pattern("(?m)" + string(l)).MatchString(c.line) }

// first holds when a pattern matches the first operand.
type first string

func (f first) of(c *call) bool {
	rest := c.operands()
	return len(rest) > 0 && pattern(string(f)).MatchString(rest[0])
}

// file holds when an operand is a file of that kind; writes, when a file that the call writes to is.
type file func(*judge, string) bool

func (is file) of(c *call) bool { return c.any(c.operands(), is) }

// others holds when an operand after the first is a file of that kind.
type others func(*judge, string) bool

func (is others) of(c *call) bool {
	operands := c.operands()
	return len(operands) > 1 && c.any(operands[1:], is)
}

type writes func(*judge, string) bool

func (is writes) of(c *call) bool { return c.any(c.destinations(), is) }

func (c *call) any(files []string, is func(*judge, string) bool) bool {
	return slices.ContainsFunc(files, func(name string) bool { return is(c.j, c.j.canonical(name)) })
}

// from holds when the words or the input have that taint.
type from taint

func (f from) of(c *call) bool { return (c.taint|c.in.taint)&taint(f) != 0 }

// does is a test in code.
type does func(c *call) bool

func (d does) of(c *call) bool { return d(c) }

func reads(c *call) bool { return c.in.set }

type not struct{ test }

func (n not) of(c *call) bool { return !n.test.of(c) }

type all []test

func (a all) of(c *call) bool { return !slices.ContainsFunc(a, func(t test) bool { return !t.of(c) }) }

type either []test

func (e either) of(c *call) bool {
	return slices.ContainsFunc(e, func(t test) bool { return t.of(c) })
}

var patterns sync.Map // compiled, by text

// pattern compiles a regular expression on first use.
func pattern(text string) *regexp.Regexp {
	compiled, ok := patterns.Load(text)
	if !ok {
		compiled, _ = patterns.LoadOrStore(text, regexp.MustCompile(text))
	}
	return compiled.(*regexp.Regexp)
}
