package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rule is one thing that a command may do. A rule with conditions is asked about every program that they name; one
// without is reported where the reading of the line comes upon it.
type rule struct {
	id      string
	verdict Level
	reason  string
	when    []condition
}

// condition is when a rule is hit: by one of these programs, told one of these words if there are any, and with
// arguments that the test is true of. Options and operands are those behind the word.
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

// judge asks the rules for this program.
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

// The tests are data, so that a table of them costs nothing until a command is read.

// always is true of all but a program that only explains itself.
type always struct{}

func (always) of(c *call) bool {
	return !hasFlag(c.args, "", "help", "version") && !(len(c.args) == 1 && (c.args[0] == "-h" || c.args[0] == "-V"))
}

// flag is true where an option is given: one of the letters that stand first, or one of the long names behind them.
type flag []string

func (f flag) of(c *call) bool { return hasFlag(c.args, f[0], f[1:]...) }

// word is true where an argument is one of some words.
type word []string

func (w word) of(c *call) bool {
	return slices.ContainsFunc(c.args, func(arg string) bool { return slices.Contains(w, arg) })
}

// line is true where a pattern matches the program and its arguments, each of which is a line.
type line string

func (l line) of(c *call) bool { return pattern("(?m)" + string(l)).MatchString(c.line) }

// first is true where a pattern matches the first operand.
type first string

func (f first) of(c *call) bool {
	rest := c.operands()
	return len(rest) > 0 && pattern(string(f)).MatchString(rest[0])
}

// file is true where an operand is such a file; writes, where what is written to is.
type file func(*judge, string) bool

func (is file) of(c *call) bool { return c.any(c.operands(), is) }

// others is true where an operand behind the first is such a file.
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

// from is true where the words or the input come from there.
type from taint

func (f from) of(c *call) bool { return (c.taint|c.in.taint)&taint(f) != 0 }

// does is a test of its own.
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

var patterns sync.Map // compiled, by their text

// pattern is a regular expression, which is compiled when it is first asked for.
func pattern(text string) *regexp.Regexp {
	compiled, ok := patterns.Load(text)
	if !ok {
		compiled, _ = patterns.LoadOrStore(text, regexp.MustCompile(text))
	}
	return compiled.(*regexp.Regexp)
}
