package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// builtin follows a builtin command, which changes the shell itself.
func (c *call) builtin() {
	rest := c.operands
	switch c.name {
	case "cd", "chdir", "pushd", "popd":
		target := c.j.home()
		if len(rest) > 0 {
			target = c.j.canonical(rest[0])
		}
		if c.name == "popd" || !strings.HasPrefix(target, "/") {
			target = unknown
		}
		c.j.set("PWD", value{target})
	case "set":
		if i := slices.Index(c.args, "--"); i >= 0 {
			c.j.params = c.args[i+1:]
		}
	case "shift":
		c.j.params = c.j.params[min(1, len(c.j.params)):]
	case "unset":
		for _, name := range rest {
			c.j.set(name)
		}
	case "read":
		c.j.read(rest, c.in)
	case "mapfile":
		c.j.set(first(append(rest, "MAPFILE")), c.in.lines())
	case "alias":
		for _, arg := range c.args {
			if name, code, ok := strings.Cut(arg, "="); ok {
				c.j.aliases[name] = code
			}
		}
	case "hash":
		if len(c.args) == 3 && c.args[0] == "-p" {
			c.j.link(c.args[1], c.args[2])
		}
	case "trap":
		if len(rest) > 1 {
			c.j.code(rest[0], stream{})
		}
	}
}

// read sets variables from lines of the input. Each line is a possible value, as the command may be in a loop.
func (m *machine) read(names []string, in stream) {
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	lines := in.lines()
	if len(lines) > 8 {
		lines = append(lines[:8:8], unknown)
	}
	for k, name := range names {
		var may binding
		for _, line := range lines {
			text := ""
			// The library modifies its configuration, and shares a nil one.
			if fields := expand.ReadFields(new(expand.Config), line, len(names), true); !isKnown(line) {
				text = line
			} else if k < len(fields) {
				text = fields[k]
			}
			may = append(may, value{text})
		}
		m.set(name, may...)
	}
}
