package policy

import (
	"path"
	"strings"
)

// fetched comes from the network, or lies in a file that came from there.
func (c *call) fetched() stream {
	out := stream{text: unknown, set: true, taint: remote}
	dir, named := "", c.name == "wget" // files are named as they are there
	for i, arg := range c.args {
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1]
		}
		short := strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
		target := ""
		switch {
		case strings.HasPrefix(arg, "--output="), strings.HasPrefix(arg, "--output-document="):
			_, target, _ = strings.Cut(arg, "=")
		case c.name == "curl" && (arg == "--output" || short && strings.HasSuffix(arg, "o") && len(arg) < 8):
			target = next
		case c.name == "curl" && hasFlag([]string{arg}, "O", "remote-name", "remote-name-all"):
			named = true
		case c.name == "curl" && arg == "--output-dir", c.name == "wget" && (arg == "-P" || arg == "--directory-prefix"):
			dir = next
		case c.name == "wget" && (arg == "--output-document" || short && strings.HasSuffix(arg, "O")):
			target = next
		case c.name == "wget" && strings.HasPrefix(arg, "-O"):
			target = arg[2:]
		}
		if target != "" && target != "-" {
			c.j.writesTo(target)
			c.j.keep(c.j.canonical(target), out)
		}
	}
	if !named {
		return out
	}
	urls := c.operands("oHdXAeuUFP")
	for _, url := range urls[:min(len(urls), maxWords)] {
		c.j.keep(c.j.canonical(path.Join(dir, path.Base(url))), out)
	}
	return out
}
