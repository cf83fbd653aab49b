package policy

import (
	"strings"
)

// shell follows a shell that is started: with code, with a script, or with commands on its input.
func (c *call) shell() stream {
	given, rest := getopt("sh", c.args)
	for _, file := range given.values("rcfile", "init-file") {
		c.j.script(file, nil)
	}
	if given.has("version", "help") {
		return stream{unknown, true}
	}
	defer func(outer shell) { c.j.zero, c.j.params = outer.zero, outer.params }(c.j.shell)
	input := given.has("s")
	switch {
	case given.has("c") && len(rest) > 0:
		out := c.j.subshell(func() stream {
			if c.j.params = rest[min(2, len(rest)):]; len(rest) > 1 {
				c.j.zero = rest[1]
			}
			return c.j.code(rest[0], c.in)
		})
		c.j.reportSource(rest[0], "shell-code")
		return out
	case len(rest) > 0 && !input && !isStdin(rest[0]):
		c.j.script(rest[0], rest[1:])
		return stream{unknown, true}
	case len(rest) > 0 && !input:
		rest = rest[1:]
	}
	c.j.params = rest
	return c.piped()
}

func isStdin(name string) bool {
	return name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0"
}

// piped follows a shell that reads commands from its input.
func (c *call) piped() stream {
	c.j.opens = c.j.opens || !c.in.set
	return c.j.codeFrom(c.in, nil, "piped-code")
}

// codeFrom judges code from a stream by its known text and by its source; rule is for code of this machine.
func (j *judge) codeFrom(content stream, params []string, rule string) stream {
	out := stream{unknownFrom(content.text), true}
	if !content.set {
		return out
	}
	first, _, _ := strings.Cut(content.text, "\n")
	foreign := strings.HasPrefix(first, "#!") && !strings.Contains(first, "sh")
	if !foreign && strings.TrimSpace(clean(content.text)) != "" {
		out = j.subshell(func() stream {
			if params != nil {
				j.params = params
			}
			return j.code(content.text, stream{})
		})
	}
	j.reportSource(content.text, rule)
	return out
}

// eval follows code that this shell itself runs.
func (c *call) eval(code string) stream {
	out := stream{unknown, true}
	if strings.TrimSpace(clean(code)) != "" {
		out = c.j.code(code, c.in)
	}
	if !isKnown(code) {
		c.j.reportSource(code, "eval-unknown")
	}
	return out
}

func (c *call) source() stream {
	switch {
	case len(c.args) == 0:
		return stream{}
	case isStdin(c.args[0]):
		return c.piped()
	}
	if content := c.j.file(c.args[0]); content.set {
		return c.eval(content.text)
	}
	return stream{unknown, true}
}

// interpreter follows the code of an interpreter's options.
func (c *call) interpreter(l language) stream {
	given, rest := getopt(c.name, c.args)
	code, hasCode := given.value(l.Code...)
	switch {
	case given.has(l.Module...):
	case hasCode:
		starts := starting.MatchString(code)
		c.j.embedded(code, starts)
		if !given.has(l.Filter...) || !isKnown(code) || starts { // a line filter that starts nothing is harmless
			c.j.reportSource(code, "interpreter-code")
		}
	case given.has("V", "h", "version", "help"):
	case len(rest) > 0 && !isStdin(rest[0]):
		c.foreign(c.j.file(rest[0]), "")
	case len(rest) > 0 || l.Stdin:
		c.foreign(c.in, "interpreter-input")
	}
	return stream{unknownFrom(c.in.text), true}
}

// foreign judges a program of another language in a stream; rule is for code of this machine.
func (c *call) foreign(program stream, rule string) {
	if program.set {
		c.j.embedded(program.text, starting.MatchString(program.text))
		c.j.reportSource(program.text, rule)
	}
}
