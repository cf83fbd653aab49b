package policy

import "strings"

// shell is a shell that is started: with code, with a script, or to read its input.
func (c *call) shell() stream {
	code, input := false, false
	rest := c.args
	for len(rest) > 0 && len(rest[0]) > 1 && (rest[0][0] == '-' || rest[0][0] == '+') {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			break
		}
		if strings.HasPrefix(arg, "--") {
			switch {
			case arg == "--rcfile" || arg == "--init-file":
				if len(rest) > 0 {
					c.script(rest[0], nil)
					rest = rest[1:]
				}
			case strings.HasPrefix(arg, "--command"): // fish
				if text, ok := strings.CutPrefix(arg, "--command="); ok {
					rest = append([]string{text}, rest...)
				}
				code = true
			case arg == "--version" || arg == "--help":
				return stream{text: unknown, set: true}
			}
			continue
		}
		for _, letter := range arg[1:] {
			switch letter {
			case 'c':
				code = true
			case 's':
				input = true
			case 'o', 'O':
				rest = rest[min(1, len(rest)):]
			}
		}
	}
	switch {
	case code && len(rest) > 0:
		out := c.j.scope(func() stream {
			zero := c.j.zero
			defer func() { c.j.zero = zero }()
			if c.j.params = rest[min(2, len(rest)):]; len(rest) > 1 {
				c.j.zero = rest[1]
			}
			return c.j.code(rest[0], c.in)
		})
		c.reportSource(c.taint, shellCode)
		return out
	case len(rest) > 0 && !input && !isStdin(rest[0]):
		c.script(rest[0], rest[1:])
		return stream{text: unknown, set: true}
	}
	if !input && len(rest) > 0 {
		rest = rest[1:]
	}
	params := c.j.params
	c.j.params = rest
	defer func() { c.j.params = params }()
	return c.piped()
}

func isStdin(name string) bool {
	return name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0"
}

// piped is a shell that reads commands from its input.
func (c *call) piped() stream {
	if !c.in.set {
		return stream{text: unknown, set: true, taint: c.in.taint}
	}
	return c.codeFrom(c.in, nil, true)
}

// codeFrom judges code that comes out of a stream. What is known of it counts, and where it comes from.
func (c *call) codeFrom(content stream, params []string, ask bool) stream {
	text := content.text
	if strings.HasPrefix(text, "#!") {
		line, _, _ := strings.Cut(text, "\n")
		if !strings.Contains(line, "sh") {
			text = ""
		}
	}
	out := stream{text: unknown, set: true, taint: content.taint}
	if strings.Trim(text, unknown+" \t\n") != "" {
		out = c.j.scope(func() stream {
			if params != nil {
				c.j.params = params
			}
			return c.j.code(text, stream{})
		})
	}
	switch {
	case ask:
		c.reportSource(content.taint, pipedCode)
	case content.taint&(remote|decoded) != 0:
		c.reportSource(content.taint, remoteCode)
	}
	return out
}

// reportSource reports code by where it comes from, or else by the rule.
func (c *call) reportSource(from taint, otherwise string) {
	switch {
	case from&remote != 0:
		c.j.report(remoteCode)
	case from&decoded != 0:
		c.j.report(decodedCode)
	default:
		c.j.report(otherwise)
	}
}

func (c *call) eval(code string) stream {
	out := stream{text: unknown, set: true}
	code = strings.TrimPrefix(code, "-- ")
	if strings.Trim(code, unknown+" ") != "" {
		out = c.j.code(code, c.in)
	}
	switch {
	case c.taint&(remote|decoded) != 0:
		c.reportSource(c.taint, evalUnknown)
	case strings.Contains(code, unknown):
		c.j.report(evalUnknown)
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
		var out stream
		if strings.Trim(content.text, unknown+" \n") != "" {
			out = c.j.code(content.text, c.in)
		}
		if content.taint&(remote|decoded) != 0 {
			c.reportSource(content.taint, evalUnknown)
		} else if strings.Contains(content.text, unknown) {
			c.j.report(evalUnknown)
		}
		return out
	}
	return stream{text: unknown, set: true}
}
