package policy

import "strings"

func (c *call) changeDirectory() {
	rest := c.operands("")
	target := c.j.home()
	if c.name == "popd" {
		target = unknown
	}
	if len(rest) > 0 {
		target = rest[0]
	}
	if target = c.j.canonical(target); !strings.HasPrefix(target, "/") {
		target = unknown
	}
	c.j.set("PWD", binding{{words: []string{target}}}, false)
}

// read gives variables what stands on the lines of the input.
func (c *call) read() {
	var names []string
	for _, name := range c.operands("dnNptuia") {
		if isAssignment(name + "=") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	if !c.in.set || strings.Contains(c.in.text, unknown) {
		for _, name := range names {
			c.j.set(name, binding{{words: []string{unknown}, taint: c.in.taint}}, false)
		}
		return
	}
	all := make([]binding, len(names))
	for i, line := range strings.Split(strings.TrimRight(c.in.text, "\n"), "\n") {
		if i >= 8 {
			line = unknown
		}
		fields := strings.Fields(line)
		for k := range names {
			text := ""
			switch {
			case k == len(names)-1 && k < len(fields):
				text = strings.Join(fields[k:], " ")
			case k < len(fields):
				text = fields[k]
			}
			all[k] = append(all[k], value{words: []string{text}, taint: c.in.taint})
		}
		if i >= 8 {
			break
		}
	}
	for k, name := range names {
		c.j.set(name, all[k], false)
	}
}

func (c *call) readAll() {
	name := "MAPFILE"
	if rest := c.operands("dnOsuCc"); len(rest) > 0 {
		name = rest[0]
	}
	words := []string{unknown}
	if c.in.set {
		words = strings.Split(strings.TrimRight(c.in.text, "\n"), "\n")
		words = words[:min(len(words), maxWords)]
	}
	c.j.set(name, binding{{words: words, array: true, taint: c.in.taint}}, false)
}

func (c *call) alias() {
	for _, arg := range c.args {
		if name, code, ok := strings.Cut(arg, "="); ok {
			if c.j.aliases == nil {
				c.j.aliases = map[string]string{}
			}
			c.j.aliases[name] = code
		}
	}
}
