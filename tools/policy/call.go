package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is a program that is started, or a builtin.
type call struct {
	j          *judge
	name       string // without directory
	args       []string
	in         stream
	taint      taint // of the words
	background bool
}

// call reads a simple command.
func (j *judge) call(cmd *syntax.CallExpr, in stream, to outputs) stream {
	if len(cmd.Args) == 0 {
		for _, assign := range cmd.Assigns {
			j.assign(assign)
		}
		return stream{}
	}
	if len(cmd.Assigns) > 0 { // for this command alone
		before := make(map[string]binding, len(cmd.Assigns))
		for _, assign := range cmd.Assigns {
			if assign.Name != nil {
				before[assign.Name.Value] = j.vars[assign.Name.Value]
			}
			j.assign(assign)
		}
		defer func() { j.restore(before) }()
	}
	words := j.fields(cmd.Args)
	if len(words) == 0 {
		return stream{}
	}
	if base := path.Base(words[0]); to.network && (isShell(base) || base == "exec") {
		j.report(reverseShell)
	}
	if len(words) == 1 && words[0] == "exec" && in.set {
		if j.inputs == nil {
			j.inputs = map[string]stream{}
		}
		j.inputs["0"] = in // from now on
	}
	return j.invoke(words, in, j.pinned, j.detached > 0)
}

// invoke judges a command by its words. Prefixes such as sudo come back here with what they start.
func (j *judge) invoke(words []string, in stream, from taint, background bool) stream {
	defer func() { j.depth-- }()
	if !j.enter() || len(words) == 0 || !j.spend() {
		return stream{text: unknown, set: true}
	}
	name := words[0]
	if code, ok := j.aliases[name]; ok && !j.calling(name) {
		return j.during(name, func() stream { return j.code(code+" "+quoteAll(words[1:]), in) })
	}
	body, ok := j.funcs[name]
	if ok && slices.Contains(j.active, name) {
		j.again()
	}
	if ok && !j.calling(name) {
		return j.during(name, func() stream {
			params := j.params
			j.params = words[1:]
			defer func() { j.params = params }()
			return j.stmt(body, in)
		})
	}
	c := &call{j: j, name: path.Base(name), args: words[1:], in: in, taint: from, background: background}
	if len(j.copies) > 0 {
		if other := cmp.Or(j.copies[name], j.copies[j.canonical(name)]); other != "" {
			c.name = other
		}
	}
	if strings.ContainsAny(c.name, unknown+"*?[") && c.name != "[" && c.name != "[[" {
		return c.guess(name)
	}
	if strings.Contains(name, "/") {
		if strings.HasPrefix(j.canonical(name), "/etc/init.d/") {
			(&call{j: j, name: "service", args: c.args}).judge()
		}
		if c.script(name, c.args); c.ownPower(name) {
			return stream{text: unknown, set: true}
		}
	}
	c.judge()
	for _, file := range c.destinations() {
		c.j.writesTo(file)
	}
	return c.run()
}

// ownPower says whether a script of the project's only has the name of a program that turns machines off.
func (c *call) ownPower(word string) bool {
	file := c.j.canonical(word)
	switch c.name {
	case "shutdown", "reboot", "halt", "poweroff", "init", "telinit":
		return !strings.HasPrefix(word, "/") && !slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin"}, path.Dir(file))
	}
	return false
}

func (j *judge) calling(name string) bool {
	n := 0
	for _, active := range j.active {
		if active == name {
			n++
		}
	}
	return n > 1
}

func (j *judge) during(name string, f func() stream) stream {
	j.active = append(j.active, name)
	defer func() { j.active = j.active[:len(j.active)-1] }()
	return f()
}

// judge asks the rules for this program.
func (c *call) judge() {
	for _, r := range ruleIndex[c.name] {
		if r.match(c) {
			c.j.report(r.id)
		}
	}
}

// guess judges a command whose name is not all known: every program that it may be.
func (c *call) guess(word string) stream {
	pattern := strings.ReplaceAll(c.name, unknown, "*")
	if strings.Trim(pattern, "*?") == "" {
		switch {
		case c.taint&remote != 0:
			c.j.report(remoteCode)
		case c.taint&decoded != 0:
			c.j.report(decodedCode)
		}
		if c.flag("rR", "recursive") {
			c.name = "rm"
			if c.anyPath(c.operands(""), c.j.isVital) {
				c.j.report(deleteSystem)
			}
		}
		c.j.report(unknownCommand)
		return stream{text: unknown, set: true, taint: c.taint}
	}
	names := append(sortedNames, "sh", "bash", "python3", "eval", "sudo")
	for _, name := range names {
		if glob(pattern, name) {
			guessed := *c
			guessed.name = name
			guessed.judge()
			if c.j.spend() && (isShell(name) || name == "find") {
				guessed.run()
			}
		}
	}
	return stream{text: unknown, set: true, taint: c.taint}
}

// quoteAll writes words as shell code.
func quoteAll(words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString("\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + "\" ")
	}
	return b.String()
}
