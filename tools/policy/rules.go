package policy

import (
	"regexp"
	"slices"
	"strings"
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

type test func(c *call) bool

var (
	ruleByID    = map[string]*rule{}
	conditions  = map[string][]ruleCondition{}
	sortedNames = []string{"bash", "eval", "python3", "sh", "sudo"}
)

type ruleCondition struct {
	id    string
	words []string
	test  test
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
				conditions[name] = append(conditions[name], ruleCondition{r.id, strings.Fields(when.words), when.test})
				sortedNames = append(sortedNames, name)
			}
		}
	}
	slices.Sort(sortedNames)
	sortedNames = slices.Compact(sortedNames)
}

// judge asks the rules for this program.
func (c *call) judge() {
	if len(conditions[c.name]) == 0 {
		return
	}
	all := *c
	all.line = c.name + "\n" + strings.Join(c.args, "\n")
	verb, rest := c.sub()
	told := all
	told.args = rest
	for _, when := range conditions[c.name] {
		if len(when.words) == 0 && when.test(&all) || slices.Contains(when.words, verb) && when.test(&told) {
			c.j.report(when.id)
		}
	}
}

// always is true of all but a program that only explains itself.
func always(c *call) bool {
	return !hasFlag(c.args, "", "help", "version") && !(len(c.args) == 1 && (c.args[0] == "-h" || c.args[0] == "-V"))
}

// flag is true where an option is given.
func flag(letters string, long ...string) test {
	return func(c *call) bool { return hasFlag(c.args, letters, long...) }
}

// word is true where an argument is one of some words.
func word(words ...string) test {
	return func(c *call) bool {
		return slices.ContainsFunc(c.args, func(arg string) bool { return slices.Contains(words, arg) })
	}
}

// line is true where a pattern matches the program and its arguments, each of which is a line.
func line(pattern string) test {
	compiled := regexp.MustCompile("(?m)" + pattern)
	return func(c *call) bool { return compiled.MatchString(c.line) }
}

// file is true where an operand is such a file; writes, where what is written to is.
func file(is func(*judge, string) bool) test {
	return func(c *call) bool { return c.any(c.operands(), is) }
}

func writes(is func(*judge, string) bool) test {
	return func(c *call) bool { return c.any(c.destinations(), is) }
}

func (c *call) any(files []string, is func(*judge, string) bool) bool {
	return slices.ContainsFunc(files, func(name string) bool { return is(c.j, c.j.canonical(name)) })
}

// first is true where a pattern matches the first operand.
func first(pattern string) test {
	compiled := regexp.MustCompile(pattern)
	return func(c *call) bool {
		rest := c.operands()
		return len(rest) > 0 && compiled.MatchString(rest[0])
	}
}

// behindFirst is the test of a call without its first operand; last, of the last operand alone.
func behindFirst(t test) test {
	return func(c *call) bool { rest := c.operands(); return len(rest) > 1 && t(c.with(rest[1:])) }
}

func (c *call) with(args []string) *call {
	other := *c
	other.args = append([]string{"--"}, args...)
	return &other
}

func from(taints taint) test { return func(c *call) bool { return (c.taint|c.in.taint)&taints != 0 } }

func reads(c *call) bool { return c.in.set }

func not(t test) test { return func(c *call) bool { return !t(c) } }

func all(tests ...test) test {
	return func(c *call) bool { return !slices.ContainsFunc(tests, func(t test) bool { return !t(c) }) }
}

func either(tests ...test) test {
	return func(c *call) bool { return slices.ContainsFunc(tests, func(t test) bool { return t(c) }) }
}
