package policy

import (
	"slices"
	"strings"
)

// prefix is a program that starts the command behind its options.
type prefix struct {
	valued   string   // letters of options that take the next argument
	long     []string // long options that do
	operands int      // arguments before the command
	sub      string   // the words of which one must come first
}

var prefixes = map[string]prefix{
	"sudo":    {valued: "ugphCrtTURD", long: []string{"user", "group", "host", "prompt", "chdir", "role", "type"}},
	"doas":    {valued: "uC"},
	"pkexec":  {long: []string{"user"}},
	"env":     {valued: "uCS", long: []string{"unset", "chdir"}},
	"nohup":   {},
	"setsid":  {},
	"time":    {valued: "fo"},
	"nice":    {valued: "n", long: []string{"adjustment"}},
	"ionice":  {valued: "cnpPu"},
	"timeout": {valued: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"stdbuf":  {valued: "ioe"},
	"command": {}, "builtin": {},
	"exec":    {valued: "a"},
	"busybox": {}, "toybox": {},
	"unshare": {valued: "SGR"}, "nsenter": {valued: "tSG"},
	"strace": {valued: "eopsuEaAbIOPX"}, "ltrace": {valued: "eopsu"},
	"xvfb-run": {valued: "nsef"}, "rlwrap": {}, "unbuffer": {}, "caffeinate": {valued: "tw"}, "dbus-run-session": {},
	"flock": {valued: "wE", operands: 1}, "taskset": {operands: 1}, "chrt": {operands: 1}, "setarch": {operands: 1}, "numactl": {},
	"gosu": {operands: 1}, "su-exec": {operands: 1}, "setpriv": {}, "systemd-run": {valued: "pu"}, "chronic": {}, "ts": {},
	"fakeroot": {}, "firejail": {}, "proxychains": {}, "proxychains4": {}, "torsocks": {}, "valgrind": {}, "linux32": {}, "linux64": {}, "run0": {},
	"npm": {sub: "exec x"}, "pnpm": {sub: "exec dlx"}, "yarn": {sub: "exec dlx"}, "pyenv": {sub: "exec"}, "rbenv": {sub: "exec"}, "mise": {sub: "exec x"},
	"npx": {valued: "p"}, "bunx": {}, "watchexec": {valued: "ewir"}, "entr": {},
	"uv": {sub: "run"}, "poetry": {sub: "run"}, "pipenv": {sub: "run"}, "bundle": {sub: "exec"}, "hatch": {sub: "run"},
	"conda": {sub: "run", valued: "np"}, "mamba": {sub: "run", valued: "np"}, "pdm": {sub: "run"}, "direnv": {sub: "exec", operands: 1},
}

func (c *call) prefixed(p prefix) stream {
	args := c.args
	if p.sub != "" {
		if len(args) == 0 || !slices.Contains(strings.Fields(p.sub), args[0]) {
			return c.printed()
		}
		args = args[1:]
	}
	if c.name == "command" && c.flag("vV") {
		return c.printed()
	}
	if c.name == "env" {
		for i, arg := range args { // -S: the command is one text
			if !strings.HasPrefix(arg, "-") {
				break
			}
			if text, ok := strings.CutPrefix(arg, "-S"); ok {
				if text == "" && i+1 < len(args) {
					text = args[i+1]
				}
				return c.j.code(text, c.in)
			}
			if text, ok := strings.CutPrefix(arg, "--split-string="); ok {
				return c.j.code(text, c.in)
			}
		}
	}
	if c.name == "flock" || c.name == "npx" || c.name == "npm" {
		if i := slices.Index(args, "-c"); i >= 0 && i+1 < len(args) {
			return c.j.code(args[i+1], c.in)
		}
	}
	rest := after(args, p.valued, p.long, p.operands)
	if dir := chdirOption(c.name, args[:len(args)-len(rest)]); dir != "" {
		was := c.j.vars["PWD"]
		(&call{j: c.j, name: "cd", args: []string{dir}}).changeDirectory()
		defer c.j.restore(map[string]binding{"PWD": was})
	}
	if c.name == "env" || c.name == "sudo" || c.name == "doas" || c.name == "systemd-run" {
		for len(rest) > 0 && isAssignment(rest[0]) {
			name, text, _ := strings.Cut(rest[0], "=")
			c.j.setText(name, text, c.taint)
			rest = rest[1:]
		}
	}
	if len(rest) == 0 {
		if c.name == "sudo" && c.flag("si", "shell", "login") && c.in.set {
			return c.piped()
		}
		return stream{}
	}
	background := c.background || c.name == "nohup" || c.name == "setsid"
	return c.j.invoke(rest, c.in, c.taint, background)
}

// chdirOption is the directory that env or sudo goes to first.
func chdirOption(name string, options []string) string {
	letter := map[string]string{"env": "-C", "sudo": "-D"}[name]
	if letter == "" {
		return ""
	}
	for i, arg := range options {
		if dir, ok := strings.CutPrefix(arg, "--chdir="); ok {
			return dir
		}
		if dir, ok := strings.CutPrefix(arg, letter); ok && dir != "" {
			return dir
		}
		if (arg == letter || arg == "--chdir") && i+1 < len(options) {
			return options[i+1]
		}
	}
	return ""
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
