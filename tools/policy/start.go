package policy

import (
	"regexp"
	"slices"
	"strings"
)

// starter describes how a program starts the command after its options.
type starter struct {
	operands int    // number of operands before the command
	code     string // options whose value is shell code
	dir      string // options with the directory to start in; variables may be set, too
	text     bool   // the words are joined, and a shell parses them
	inside   bool   // it starts in a container, or in another root
}

// starters has keys of a program, or of a program and its first words.
var starters = map[string]starter{
	"env": {code: "S split-string", dir: "C chdir"}, "sudo": {dir: "D chdir"}, "doas": {dir: "-"}, "systemd-run": {dir: "working-directory"},
	"timeout": {operands: 1}, "taskset": {operands: 1}, "chrt": {operands: 1}, "setarch": {operands: 1}, "gosu": {operands: 1}, "su-exec": {operands: 1}, "direnv exec": {operands: 1},
	"flock": {operands: 1, code: "c command"}, "npx": {code: "c call"}, "npm exec": {code: "c call"}, "npm x": {code: "c call"},
	"su": {operands: 99, code: "c command"}, "sg": {operands: 99, code: "c"}, "script": {operands: 99, code: "c command"}, "runuser": {code: "c command"},
	"ssh": {operands: 1, text: true}, "watch": {text: true}, "git submodule foreach": {text: true}, "git bisect run": {},
	"docker exec": {operands: 1, inside: true}, "kubectl exec": {inside: true}, "chroot": {operands: 1, inside: true},
}

func init() {
	for name := range strings.FieldsSeq("pkexec nohup setsid time nice ionice stdbuf command builtin exec busybox toybox unshare nsenter strace ltrace xvfb-run rlwrap " +
		"unbuffer caffeinate dbus-run-session numactl setpriv chronic ts fakeroot firejail proxychains torsocks valgrind linux32 linux64 run0 bunx watchexec entr") {
		starters[name] = starter{}
	}
	for _, key := range []string{"pnpm exec", "pnpm dlx", "yarn exec", "yarn dlx", "pyenv exec", "rbenv exec", "mise exec", "mise x", "uv run", "poetry run", "pipenv run",
		"bundle exec", "hatch run", "conda run", "pdm run"} {
		starters[key] = starter{}
	}
}

// starter returns the key of a command's starter, and its arguments.
func (c *call) starter() (key string, args []string) {
	if _, ok := starters[c.name]; ok {
		return c.name, c.args
	}
	verb, rest := c.sub()
	if verb == "" {
		return "", nil
	}
	if _, ok := starters[c.name+" "+verb]; ok {
		return c.name + " " + verb, rest
	}
	if len(rest) > 0 {
		if _, ok := starters[c.name+" "+verb+" "+rest[0]]; ok {
			return c.name + " " + verb + " " + rest[0], rest[1:]
		}
	}
	return "", nil
}

// start follows the command that a program starts.
func (c *call) start(key string, args []string) stream {
	s := starters[key]
	program := strings.ReplaceAll(key, " ", "-")
	given, rest := getopt(program, args)
	if i := slices.Index(rest, "--"); c.name == "kubectl" && i >= 0 {
		rest = rest[i:]
	}
	own := *c
	own.args = c.args[:len(c.args)-len(rest)]
	own.judge()
	if key == "ssh" {
		own.starts()
	}
	coded := given
	if s.operands > 0 { // the command may be after the operands
		coded, _ = (&call{name: program, args: args}).parse()
	}
	if code, ok := coded.value(strings.Fields(s.code)...); ok {
		return c.j.code(code, c.in)
	}
	if _, ok := given.value("v", "V"); ok && key == "command" {
		return c.printed()
	}
	operands := rest[:min(s.operands, len(rest))]
	rest = rest[len(operands):]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if dir, ok := given.value(strings.Fields(s.dir)...); ok {
		defer c.j.restore("PWD")()
		c.j.newCall("cd", []string{dir}).builtin()
	}
	for s.dir != "" && len(rest) > 0 && assignment.MatchString(rest[0]) {
		name, text, _ := strings.Cut(rest[0], "=")
		c.j.setText(name, text, c.taint)
		rest = rest[1:]
	}
	shell := key == "su" || key == "ssh" || key == "sudo" && hasFlag(own.args, "si", "shell", "login")
	switch {
	case len(rest) == 0 && shell:
		return c.piped()
	case len(rest) == 0:
		return c.printed()
	case s.text:
		return c.j.scope(func() stream { return c.j.code(strings.Join(rest, " "), c.in) })
	case s.inside && !(key == "chroot" && len(operands) > 0 && c.j.canonical(operands[0]) == "/"):
		c.j.contained++
		defer func() { c.j.contained-- }()
		return c.j.scope(func() stream { return c.j.invoke(rest, c.in, c.taint, false) })
	}
	return c.j.invoke(rest, c.in, c.taint, c.background || key == "nohup" || key == "setsid")
}

var assignment = regexp.MustCompile(`^\w+=`)
