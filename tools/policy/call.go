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
	name       string // without directory; the first of a program's names, see names
	args       []string
	line       string // name and arguments, one a line; for rules
	in         stream
	taint      taint // of the words
	background bool
}

// call follows a simple command.
func (j *judge) call(cmd *syntax.CallExpr, in stream, to outputs) stream {
	if len(cmd.Args) > 0 { // assignments are for this command only
		for _, assign := range cmd.Assigns {
			if assign.Name != nil {
				defer j.restore(assign.Name.Value)()
			}
		}
	}
	for _, assign := range cmd.Assigns {
		j.assign(assign)
	}
	words := j.fields(cmd.Args...)
	if len(words) == 0 {
		return stream{}
	}
	if base := path.Base(words[0]); to.network && (names[base] == "sh" || base == "exec") {
		j.report(reverseShell)
	}
	if len(words) == 1 && words[0] == "exec" && in.set {
		j.inputs["0"] = in // for all later commands
	}
	return j.invoke(words, in, j.pinned, j.detached > 0)
}

// invoke judges a command by its words. Prefixes such as sudo come back here with the command that they start.
func (j *judge) invoke(words []string, in stream, from taint, background bool) stream {
	defer func() { j.depth-- }()
	if !j.enter() || len(words) == 0 || !j.spend() {
		return unknownStream(0)
	}
	name := words[0]
	calls := len(slices.DeleteFunc(slices.Clone(j.active), func(active string) bool { return active != name }))
	body, isFunc := j.funcs[name]
	if isFunc && calls > 0 {
		j.again()
	}
	if code, ok := j.aliases[name]; (ok || isFunc) && calls < 2 {
		j.active = append(j.active, name)
		defer func() { j.active = j.active[:len(j.active)-1] }()
		if ok {
			return j.code(code+" "+quoteAll(words[1:]), in)
		}
		defer func(params []string) { j.params = params }(j.params)
		j.params = words[1:]
		return j.stmt(body, in)
	}
	c := j.newCall(j.program(name), words[1:])
	c.in, c.taint, c.background = in, from, background
	if strings.ContainsAny(c.name, unknown+"*?[") && c.name != "[" && c.name != "[[" {
		return c.guess()
	}
	if strings.Contains(name, "/") {
		if strings.HasPrefix(j.canonical(name), "/etc/init.d/") {
			j.newCall("service", c.args).judge()
		}
		c.script(name, c.args)
		switch c.name {
		case "shutdown", "reboot", "halt", "poweroff", "init", "telinit":
			if !strings.HasPrefix(name, "/") {
				return unknownStream(0) // a script of the project that has the name of a program
			}
		}
	}
	return c.run()
}

// newCall is a call of a program by one of its names.
func (j *judge) newCall(name string, args []string) *call {
	if name == "docker-compose" {
		name, args = "docker", append([]string{"compose"}, args...)
	}
	plain := strings.TrimRight(name, "0123456789.") // python3.12 is python
	if _, ok := languages[cmp.Or(names[plain], plain)]; ok {
		name = plain
	}
	return &call{j: j, name: cmp.Or(names[name], name), args: args}
}

// program returns the name of the program that a command's first word runs.
func (j *judge) program(word string) string {
	name := path.Base(word)
	for _, link := range j.links {
		found := link[0] == j.canonical(word) || !strings.Contains(word, "/") && path.Base(link[0]) == name // its directory may be in the PATH
		if found && systemProgram.MatchString(link[1]) {
			return path.Base(link[1])
		}
	}
	return name
}

// guess judges a command whose name is only partly known: as every program that it may be.
func (c *call) guess() stream {
	pattern := strings.ReplaceAll(c.name, unknown, "*")
	if strings.Trim(pattern, "*?") == "" {
		if hasFlag(c.args, "rR", "recursive") && c.any(c.operands(), (*judge).isVital) {
			c.j.report(deleteSystem)
		}
		c.j.opens = true // it may be a shell
		c.reportSource(c.taint, unknownCommand)
		return unknownStream(c.taint)
	}
	for _, name := range sortedNames {
		if glob(pattern, name) && c.j.spend() {
			guessed := c.j.newCall(name, c.args)
			guessed.in, guessed.taint = c.in, c.taint
			guessed.run()
		}
	}
	return unknownStream(c.taint)
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
		c.j.writesTo(file)
	}
	if l, ok := languages[c.name]; ok {
		return c.interpreter(l)
	}
	switch c.name {
	case "sh":
		return c.shell()
	case "cd", "chdir", "pushd", "popd", "set", "shift", "unset", "read", "mapfile", "alias", "hash", "trap":
		c.builtin()
		return stream{}
	case "eval":
		return c.eval(stream{strings.TrimPrefix(strings.Join(c.args, " "), "-- "), true, c.taint})
	case "source", ".":
		return c.source()
	case "xargs":
		return c.xargs()
	case "parallel":
		return c.parallel()
	case "find":
		return c.find()
	case "fd":
		return c.fd()
	case "at", "batch":
		return c.codeFrom(c.in, nil, "")
	case "awk":
		c.awk()
	case "emacs":
		c.destroys(strings.Join(c.args, "\n"))
	case "sed", "vim", "tar", "rsync", "scp", "sftp", "make", "gdb", "ed", "git", "tmux", "screen", "hyperfine", "concurrently", "crontab":
		c.starts()
	case "cp", "ln", "mv", "install":
		c.named()
	case "chmod":
		c.makeRunnable()
	}
	return c.printed()
}
