package policy

import (
	"regexp"
	"slices"
	"strings"
)

// starter returns the key of a command's starter, and its arguments.
func (c *command) starter() (key string, args []string) {
	starters := table().starters
	if _, ok := starters[c.name]; ok {
		return c.name, c.args
	}
	verb, args := c.verb()
	key = c.name + " " + verb
	if _, ok := starters[key]; !ok && len(args) > 0 {
		key, args = key+" "+args[0], args[1:]
	}
	if _, ok := starters[key]; !ok {
		return "", nil
	}
	return key, args
}

func first(words []string) string { return append(slices.Clip(words), "")[0] }

// start follows the command that a program starts.
func (c *call) start(key string, args []string) stream {
	s := table().starters[key]
	program := strings.ReplaceAll(key, " ", "-")
	given, rest := getopt(program, args)
	if i := slices.Index(rest, "--"); c.name == "kubectl" && i >= 0 {
		rest = rest[i:]
	}
	own := c.with(c.name, c.args[:len(c.args)-len(rest)])
	own.judge()
	own.commands()
	coded := given
	if s.Operands > 0 { // the command may be after the operands
		coded, _ = getopts(program, args)
	}
	if code, ok := coded.value(s.Code...); ok {
		return c.j.code(code, c.in)
	}
	if key == "command" && given.has("v", "V") {
		return c.printed()
	}
	operands := rest[:min(s.Operands, len(rest))]
	rest = rest[len(operands):]
	if first(rest) == "--" {
		rest = rest[1:]
	}
	if dir, ok := given.value(s.Dir...); ok {
		defer c.j.restore("PWD")()
		c.with("cd", []string{dir}).builtin()
	}
	for s.Dir != nil && assignment.MatchString(first(rest)) {
		name, text, _ := strings.Cut(rest[0], "=")
		c.j.setText(name, text)
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0 && (key == "su" || key == "ssh" || key == "sudo" && own.given.has("s", "i", "shell", "login")):
		return c.piped()
	case len(rest) == 0:
		return c.printed()
	case s.Text:
		return c.j.subshell(func() stream { return c.j.code(strings.Join(rest, " "), c.in) })
	case s.Inside && !(key == "chroot" && c.j.canonical(operands[0]) == "/"):
		c.j.contained++
		defer func() { c.j.contained-- }()
		return c.j.subshell(func() stream { return c.j.invoke(rest, c.in) })
	}
	if key == "nohup" || key == "setsid" {
		c.j.detached++
		defer func() { c.j.detached-- }()
	}
	return c.j.invoke(rest, c.in)
}

var assignment = regexp.MustCompile(`^\w+=`)
