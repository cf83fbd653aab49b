package policy

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is a command line of a program, taken apart.
type command struct {
	name     string // without directory; the first of a program's names
	args     []string
	given    options
	operands []string // the arguments that are not options
	line     string   // name and arguments, one a line; for rules
}

// call is a program that is started, or a builtin.
type call struct {
	*command
	j  *judge
	in stream
}

// call follows a simple command.
func (j *judge) call(cmd *syntax.CallExpr, in stream, to outputs) stream {
	for _, assign := range cmd.Assigns {
		if len(cmd.Args) > 0 && assign.Name != nil { // it is for this command only
			defer j.restore(assign.Name.Value)()
		}
	}
	for _, assign := range cmd.Assigns {
		j.assign(assign)
	}
	words := j.fields(cmd.Args...)
	if len(words) == 0 {
		return stream{}
	}
	if base := path.Base(words[0]); to.network && (table().names[base] == "sh" || base == "exec") {
		j.report("reverse-shell")
	}
	if len(words) == 1 && words[0] == "exec" && in.set {
		j.inputs["0"] = in // for all later commands
	}
	return j.invoke(words, in)
}

// invoke judges a command by its words. Prefixes such as sudo come back here with the command that they start.
func (j *judge) invoke(words []string, in stream) stream {
	if j.steps += len(words) / 8; len(words) == 0 || !j.spend() {
		return stream{unknown, true}
	}
	name := words[0]
	if alias, ok := j.aliases[name]; ok && j.calls[alias] < 2 {
		j.calls[alias]++
		defer func() { j.calls[alias]-- }()
		return j.code(alias+" "+quoteAll(words[1:]), in)
	}
	if body, ok := j.funcs[name]; ok && j.calls[body] < 2 {
		return j.function(body, words[1:], in)
	}
	c := &call{newCommand(j.program(name), words[1:]), j, in}
	if strings.ContainsAny(c.name, unknown+"*?[") && c.name != "[" && c.name != "[[" {
		return c.guess()
	}
	if strings.Contains(name, "/") {
		if strings.HasPrefix(j.canonical(name), "/etc/init.d/") {
			c.with("service", c.args).judge()
		}
		j.script(name, c.args)
		if powerProgram.MatchString(name) {
			return stream{unknown, true} // a script of the project that has the name of a program
		}
	}
	return c.run()
}

var powerProgram = regexp.MustCompile(`^[^/].*/(shutdown|reboot|halt|poweroff|init|telinit)$`)

// function follows the body of a function. One that starts itself twice, in parallel with itself, is a fork bomb.
func (j *judge) function(body *syntax.Stmt, params []string, in stream) stream {
	j.calls[body]++
	defer func(params []string) { j.params = params; j.calls[body]-- }(j.params)
	j.params = params
	switch {
	case j.calls[body] == 1:
		defer func(respawned int) { j.respawned = respawned }(j.respawned)
		j.respawned = 0
	case j.beside > 0:
		if j.respawned++; j.respawned > 1 {
			j.report("fork-bomb")
		}
	}
	return j.stmt(body, in)
}

// newCommand takes the command line of a program apart, which has one of the program's names.
func newCommand(name string, args []string) *command {
	if name == "docker-compose" {
		name, args = "docker", append([]string{"compose"}, args...)
	}
	names := table().names
	plain := strings.TrimRight(name, "0123456789.") // python3.12 is python
	if _, ok := table().languages[cmp.Or(names[plain], plain)]; ok {
		name = plain
	}
	c := &command{name: cmp.Or(names[name], name), args: args}
	c.given, c.operands = getopts(c.name, args)
	c.line = c.name + "\n" + strings.Join(args, "\n")
	return c
}

// with is a call of another program, or with other arguments, and the same input.
func (c *call) with(name string, args []string) *call {
	return &call{newCommand(name, args), c.j, c.in}
}

// guess judges a command whose name is only partly known: as every program that it may be.
func (c *call) guess() stream {
	pattern := clean(strings.ReplaceAll(c.name, unknown, "*"))
	if strings.Trim(pattern, "*?") == "" {
		if c.given.has("r", "R", "recursive") && c.j.any(c.operands, "vital") {
			c.j.report("delete-system")
		}
		c.j.opens = true // it may be a shell
		c.j.reportSource(c.name, "unknown-command")
		return stream{unknownFrom(c.name), true}
	}
	for _, name := range table().sorted {
		if glob(pattern, name) && c.j.spend() {
			c.with(name, c.args).run()
		}
	}
	return stream{unknownFrom(c.name), true}
}

// quoteAll writes words as shell code.
func quoteAll(words []string) string {
	var b strings.Builder
	for _, word := range words {
		quoted, _ := syntax.Quote(word, syntax.LangBash) // Quote refuses only NUL, which words do not contain
		b.WriteString(quoted + " ")
	}
	return b.String()
}

// run follows a command's effects, and returns its output.
func (c *call) run() stream {
	if key, args := c.starter(); key != "" {
		return c.start(key, args)
	}
	c.judge()
	for _, file := range c.destinations() {
		c.j.report(c.j.writeRule(file))
	}
	if l, ok := table().languages[c.name]; ok {
		return c.interpreter(l)
	}
	switch c.name {
	case "sh":
		return c.shell()
	case "cd", "chdir", "pushd", "popd", "set", "shift", "unset", "read", "mapfile", "alias", "hash", "trap":
		c.builtin()
		return stream{}
	case "eval":
		return c.eval(strings.TrimPrefix(strings.Join(c.args, " "), "-- "))
	case "source", ".":
		return c.source()
	case "xargs":
		return c.xargs()
	case "parallel":
		return c.parallel()
	case "find":
		return c.find(c.args)
	case "fd":
		return c.find(c.findArgs())
	case "at", "batch":
		return c.j.codeFrom(c.in, nil, "")
	case "cp", "ln", "mv", "install":
		c.j.named(c.command)
	case "chmod":
		c.j.makeRunnable(c.operands)
	}
	c.commands()
	return c.printed()
}
