package policy

import (
	"path"
	"slices"
	"strings"
)

// printed is what a command prints, where that can be told; it may be put into a command or piped into a shell.
func (c *call) printed() stream {
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.Contains(arg, ".") && isSecret(c.j.canonical(arg)) }) {
		c.in.taint |= secret
	}
	out := stream{text: unknown, set: true, taint: c.in.taint}
	known := c.in.set && !strings.Contains(c.in.text, unknown)
	switch c.name {
	case "echo":
		return stream{text: c.echo(), set: true, taint: c.taint}
	case "printf":
		return c.printf()
	case "cat", "tac", "head", "tail", "sort", "uniq", "tee", "less", "more", "nl", "sponge", "pv", "bat":
		return c.passed()
	case "curl", "wget", "fetch", "aria2c", "http", "https", "lynx", "nc", "ncat", "socat", "telnet", "ftp":
		return c.fetched()
	case "pwd":
		out.text = orUnknown(c.j.directory()) + "\n"
	case "which", "type":
		if rest := c.operands(""); len(rest) == 1 {
			out.text = "/usr/bin/" + rest[0] + "\n"
		}
	case "command":
		if len(c.args) == 2 {
			out.text = "/usr/bin/" + c.args[1] + "\n"
		}
	case "basename":
		if rest := c.operands("s"); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = path.Base(rest[0]) + "\n"
		}
	case "dirname":
		if rest := c.operands(""); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = path.Dir(rest[0]) + "\n"
		}
	case "realpath", "readlink":
		if rest := c.operands(""); len(rest) == 1 && !strings.Contains(rest[0], unknown) {
			out.text = c.j.canonical(rest[0]) + "\n"
		}
	case "pgrep", "pidof", "ps":
		out.taint |= pids
	case "base64", "base32", "xxd", "openssl", "uudecode", "gpg", "gunzip", "zcat", "gzip", "bunzip2", "bzcat", "xz", "xzcat", "unxz", "zstd", "zstdcat", "bzip2", "basenc":
		return c.decoded(known)
	case "rev":
		if known {
			out.text = reversed(c.in.text)
		}
		out.taint |= decoded
	case "tr":
		if known {
			out.text = c.translated()
		}
	case "true", "false", ":", "test", "[", "sleep", "exit", "return", "wait":
		return stream{set: true} // nothing
	case "ls":
		out.taint, out.text = 0, "*\n" // names
		if rest := c.operands("IwT"); len(rest) > 0 && (c.flag("d", "directory") || strings.Contains(rest[0], "*")) {
			out.text = strings.Join(rest, "\n") + "\n"
		}
	case "rm", "mkdir", "cp", "mv", "touch":
		out.taint = 0
	}
	if c.printsSettings() {
		return stream{text: ":\n", set: true}
	}
	return out
}

// passed is a command that prints its input, or files.
func (c *call) passed() stream {
	if c.name == "tee" {
		for _, name := range c.operands("") {
			c.j.keep(c.j.canonical(name), c.in)
		}
		return stream{text: c.in.text, set: true, taint: c.in.taint}
	}
	var out stream
	files := 0
	for _, name := range c.operands("ncktS") {
		if isStdin(name) {
			out = out.and(c.in)
		} else {
			content := c.j.file(name)
			if !content.set {
				content.text, content.set = unknown, true
			}
			out = out.and(content)
		}
		files++
	}
	if files == 0 {
		out = c.in
		out.taint |= c.in.taint
	}
	if (c.name == "head" || c.name == "tail") && strings.Contains(out.text, "\n") && len(out.text) < 4096 && !strings.Contains(out.text, unknown) {
		return out // more than is printed, never less
	}
	if !out.set {
		return stream{text: unknown, set: true, taint: out.taint}
	}
	return out
}

// settings are the programs whose output is made to be evaluated by a shell, and the subcommand that prints it.
var settings = map[string]string{
	"ssh-agent": "", "dircolors": "", "conda": "shell.", "mamba": "shell", "micromamba": "shell", "direnv": "hook", "pyenv": "init",
	"rbenv": "init", "nodenv": "init", "starship": "init", "zoxide": "init", "fnm": "env", "opam": "env", "brew": "shellenv",
	"kubectl": "completion", "helm": "completion", "gh": "completion", "minikube": "docker-env", "npm": "completion",
}

func (c *call) printsSettings() bool {
	sub, ok := settings[c.name]
	return ok && (sub == "" || len(c.args) > 0 && strings.HasPrefix(c.args[0], sub))
}
