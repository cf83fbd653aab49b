package policy

import "strings"

// shell follows a shell that is started: with code, with a script, or with commands on its input.
func (c *call) shell() stream {
	given, rest := getopt("sh", c.args)
	code, input := false, false
	for _, o := range given {
		switch o.name {
		case "c":
			code = true
		case "s":
			input = true
		case "rcfile", "init-file":
			c.script(o.value, nil)
		case "version", "help":
			return unknownStream(0)
		}
	}
	defer func(zero string, params []string) { c.j.zero, c.j.params = zero, params }(c.j.zero, c.j.params)
	switch {
	case code && len(rest) > 0:
		out := c.j.scope(func() stream {
			if c.j.params = rest[min(2, len(rest)):]; len(rest) > 1 {
				c.j.zero = rest[1]
			}
			return c.j.code(rest[0], c.in)
		})
		c.reportSource(c.taint, shellCode)
		return out
	case len(rest) > 0 && !input && !isStdin(rest[0]):
		c.script(rest[0], rest[1:])
		return unknownStream(0)
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
	return c.codeFrom(c.in, nil, pipedCode)
}

// codeFrom judges code from a stream by its known text and by its source; rule is for code of this machine.
func (c *call) codeFrom(content stream, params []string, rule string) stream {
	out := unknownStream(content.taint)
	if !content.set {
		return out
	}
	first, _, _ := strings.Cut(content.text, "\n")
	foreign := strings.HasPrefix(first, "#!") && !strings.Contains(first, "sh")
	if !foreign && strings.Trim(content.text, unknown+" \t\n") != "" {
		out = c.j.scope(func() stream {
			if params != nil {
				c.j.params = params
			}
			return c.j.code(content.text, stream{})
		})
	}
	if rule != "" || content.taint&(remote|decoded) != 0 {
		c.reportSource(content.taint, rule)
	}
	return out
}

// reportSource reports code by its source, or by a rule if the source is this line.
func (c *call) reportSource(from taint, otherwise string) {
	switch {
	case from&remote != 0:
		otherwise = remoteCode
	case from&decoded != 0:
		otherwise = decodedCode
	}
	c.j.report(otherwise)
}

// eval follows code that this shell itself runs.
func (c *call) eval(code stream) stream {
	out := unknownStream(0)
	if strings.Trim(code.text, unknown+" \n") != "" {
		out = c.j.code(code.text, c.in)
	}
	if code.taint&(remote|decoded) != 0 || strings.Contains(code.text, unknown) {
		c.reportSource(code.taint, evalUnknown)
	}
	return out
}

func (c *call) source() stream {
	if len(c.args) == 0 {
		return stream{}
	}
	if isStdin(c.args[0]) {
		return c.piped()
	}
	if content := c.j.file(c.args[0]); content.set {
		return c.eval(content)
	}
	return unknownStream(0)
}
