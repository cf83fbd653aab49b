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
	sub      string   // the word that must come first
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
	"npx": {valued: "pc"}, "bunx": {}, "watchexec": {valued: "ewir"}, "entr": {},
	"uv": {sub: "run"}, "poetry": {sub: "run"}, "pipenv": {sub: "run"}, "bundle": {sub: "exec"}, "hatch": {sub: "run"},
	"conda": {sub: "run", valued: "np"}, "mamba": {sub: "run", valued: "np"}, "pdm": {sub: "run"}, "direnv": {sub: "exec", operands: 1},
}

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
	case "trap":
		if rest := c.operands(""); len(rest) > 1 {
			c.j.code(rest[0], stream{})
		}
		return stream{}
	case "ssh", "su", "runuser", "watch", "script", "tmux", "screen":
		return c.elsewhere()
	case "docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose":
		return c.contained()
	case "git":
		c.git()
	case "at", "batch":
		if c.in.set {
			return c.codeFrom(c.in, nil, false)
		}
	case "awk", "gawk", "mawk", "nawk", "vim", "vi", "nvim", "ex", "tar", "gdb", "emacs":
		c.embedded()
	case "chmod":
		c.makeRunnable()
	}
	return c.printed()
}

func (c *call) prefixed(p prefix) stream {
	args := c.args
	if p.sub != "" {
		if len(args) == 0 || args[0] != p.sub {
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
	if c.name == "flock" {
		if i := slices.Index(args, "-c"); i >= 0 && i+1 < len(args) {
			return c.j.code(args[i+1], c.in)
		}
	}
	rest := after(args, p.valued, p.long, p.operands)
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

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

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

// makeRunnable notes the files that chmod makes executable.
func (c *call) makeRunnable() {
	rest := c.operands("")
	if len(rest) < 2 {
		return
	}
	mode := rest[0]
	if !strings.Contains(mode, "x") && strings.Trim(mode, "01234567") != "" || strings.HasPrefix(mode, "-") {
		return
	}
	if strings.Trim(mode, "01234567") == "" && !strings.ContainsAny(mode, "1357") {
		return
	}
	if c.j.runnable == nil {
		c.j.runnable = map[string]bool{}
	}
	for _, name := range rest[1:] {
		c.j.runnable[c.j.canonical(name)] = true
	}
}

// elsewhere is a command that is run by another shell: on another machine, as another user, in another terminal.
func (c *call) elsewhere() stream {
	switch c.name {
	case "su", "runuser", "script":
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
		for _, arg := range c.args {
			c.j.aside(arg)
		}
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
	return c.j.scope(func() stream {
		c.j.contained++
		defer func() { c.j.contained-- }()
		return c.j.invoke(rest, c.in, c.taint, false)
	})
}

// embedded looks for commands in what programs of another trade are told to start.
func (c *call) embedded() {
	for _, arg := range c.args {
		c.destroys(arg)
		if _, code, ok := strings.Cut(arg, "!"); ok {
			c.j.aside(code)
		}
		if _, code, ok := strings.Cut(arg, "exec="); ok {
			c.j.aside(code)
		}
		if code, ok := strings.CutPrefix(arg, "shell "); ok {
			c.j.aside(code)
		}
	}
}

// aside judges text that may be code: only what it would do counts, and not that it cannot be read.
func (j *judge) aside(code string) {
	if len(code) < 4 || strings.Contains(code, unknown) || !j.spend() {
		return
	}
	before := j.worst
	j.scope(func() stream { return j.code(code, stream{}) })
	if j.worst.Rule == unparsable || j.worst.Rule == unknownCommand || j.worst.Rule == tooComplex {
		j.worst = before
	}
}

// script follows a file of commands that this line itself has written.
func (c *call) script(name string, params []string) {
	file := c.j.canonical(name)
	if c.j.runnable[file] {
		defer c.j.report(madeRunnable)
	}
	content, ok := c.j.files[file]
	if !ok {
		return
	}
	c.codeFrom(content, params, false)
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish", "yash", "csh", "tcsh", "ksh93", "pdksh":
		return true
	}
	return false
}
