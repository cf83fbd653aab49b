package policy

import (
	"slices"
	"strings"
)

// run follows what a command does beyond what the rules look at, and returns what it prints.
func (c *call) run() stream {
	if p, ok := prefixes[c.name]; ok {
		return c.prefixed(p)
	}
	if isShell(c.name) {
		return c.shell()
	}
	if in, ok := interpreterOf(c.name); ok {
		return c.interpreter(in)
	}
	switch c.name {
	case "cd", "chdir", "pushd", "popd":
		c.changeDirectory()
		return stream{}
	case "eval":
		return c.eval(strings.Join(c.args, " "))
	case "source", ".":
		return c.source()
	case "xargs":
		return c.xargs()
	case "parallel":
		return c.parallel()
	case "find", "gfind":
		return c.find()
	case "fd", "fdfind":
		return c.fd()
	case "set":
		if i := slices.Index(c.args, "--"); i >= 0 {
			c.j.params = c.args[i+1:]
		}
		return stream{}
	case "shift":
		c.j.params = c.j.params[min(1, len(c.j.params)):]
		return stream{}
	case "unset":
		for _, name := range c.operands("") {
			c.j.set(name, binding{}, false)
		}
		return stream{}
	case "read":
		c.read()
		return stream{}
	case "mapfile", "readarray":
		c.readAll()
		return stream{}
	case "alias":
		c.alias()
		return stream{}
	case "hash":
		if len(c.args) == 3 && c.args[0] == "-p" {
			c.j.rename(c.args[1], c.args[2])
		}
		return stream{}
	case "trap":
		if rest := c.operands(""); len(rest) > 1 {
			c.j.code(rest[0], stream{})
		}
		return stream{}
	case "ssh", "su", "sg", "runuser", "watch", "script", "tmux", "screen", "hyperfine", "concurrently", "chroot":
		return c.elsewhere()
	case "docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose":
		return c.contained()
	case "git":
		c.git()
	case "at", "batch":
		if c.in.set {
			return c.codeFrom(c.in, nil, false)
		}
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed", "vim", "vi", "nvim", "ex", "tar", "rsync", "scp", "sftp", "make", "gmake", "gdb", "ed", "emacs":
		c.starts()
	case "crontab":
		c.crontab()
	case "cp", "ln", "mv", "install":
		c.copyProgram()
	case "chmod":
		c.makeRunnable()
	}
	return c.printed()
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish", "yash", "csh", "tcsh", "ksh93", "pdksh":
		return true
	}
	return false
}
