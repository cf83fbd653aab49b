package policy

import (
	"slices"
	"strings"
)

// elsewhere is a command that is run by another shell: on another machine, as another user, in another terminal.
func (c *call) elsewhere() stream {
	switch c.name {
	case "su", "sg", "runuser", "script":
		for i, arg := range c.args {
			if (arg == "-c" || arg == "--command" || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c")) && i+1 < len(c.args) {
				return c.j.code(c.args[i+1], c.in)
			}
			if code, ok := strings.CutPrefix(arg, "--command="); ok {
				return c.j.code(code, c.in)
			}
		}
		if c.name == "runuser" {
			return c.j.invoke(after(c.args, "ug", []string{"user", "group"}, 0), c.in, c.taint, c.background)
		}
		if c.name == "su" && c.in.set {
			return c.piped()
		}
	case "watch":
		return c.j.code(strings.Join(after(c.args, "nq", []string{"interval"}, 0), " "), c.in)
	case "ssh":
		c.starts()
		rest := after(c.args, "bcDeEFIiJLlmOopQRSWwB", nil, 1)
		if len(rest) == 0 {
			if c.in.set {
				return c.piped()
			}
			break
		}
		return c.j.scope(func() stream {
			c.j.vars = nil
			return c.j.code(strings.Join(rest, " "), c.in)
		})
	case "tmux", "screen":
		words := after(c.args, "stncLSfFxyThp", nil, 0)
		if c.name == "tmux" && len(words) > 0 {
			words = after(words[1:], "stncLSfFxyThp", nil, 0)
		}
		if c.j.aside(strings.Join(words, " ")); len(words) > 1 {
			c.j.aside(words[0])
		}
	case "hyperfine", "concurrently":
		for _, code := range c.operands("wmMrPDLnps") {
			c.j.aside(code)
		}
	case "chroot":
		rest := c.operands("")
		if len(rest) < 2 {
			return c.printed()
		}
		words := after(c.args, "", []string{"userspec", "groups"}, 1)
		if c.j.canonical(rest[0]) == "/" {
			return c.j.invoke(words, c.in, c.taint, c.background)
		}
		return c.inContainer(words)
	}
	return c.printed()
}

// contained follows what is run in a container, where nothing is worse than what somebody should agree to.
func (c *call) contained() stream {
	args := c.args
	if len(args) > 0 && args[0] == "compose" {
		args = args[1:]
	}
	i := slices.Index(args, "exec")
	if i < 0 {
		return c.printed()
	}
	rest := args[i+1:]
	if c.name == "kubectl" || c.name == "oc" {
		k := slices.Index(rest, "--")
		if k < 0 {
			return c.printed()
		}
		rest = rest[k+1:]
	} else {
		rest = after(rest, "uew", []string{"user", "env", "workdir", "env-file", "index"}, 1)
	}
	if len(rest) == 0 {
		return c.printed()
	}
	return c.inContainer(rest)
}

// inContainer follows a command that has another root.
func (c *call) inContainer(words []string) stream {
	return c.j.scope(func() stream {
		c.j.contained++
		defer func() { c.j.contained-- }()
		return c.j.invoke(words, c.in, c.taint, false)
	})
}

// aside judges text that may be code: only what it would do counts, and not that it cannot be read.
func (j *judge) aside(code string) {
	if len(code) < 4 || strings.Contains(code, unknown) || !j.spend() {
		return
	}
	j.asides++
	j.scope(func() stream { return j.code(code, stream{}) })
	j.asides--
}
