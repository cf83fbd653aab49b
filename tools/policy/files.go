package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// files are what the line has done to files.
type files struct {
	written  map[string]stream
	runnable map[string]bool           // made executable
	links    [][2]string               // other names of files: path and target
	inputs   map[string]stream         // by file descriptor; "0" is set by exec
	sinks    map[string][]*syntax.Stmt // the commands behind >(...), by its name
}

// keep records the content of a file.
func (j *judge) keep(name string, content stream) {
	if stmts, ok := j.sinks[name]; ok { // it is the input of commands
		delete(j.sinks, name)
		j.subshell(func() stream { return j.stmts(stmts, content) })
	}
	if len(j.written) < maxWords {
		j.written[name] = content
	}
}

// file returns what this line wrote to a file, if it did.
func (m *machine) file(name string) stream {
	target := m.canonical(name)
	content := m.written[target]
	if number, ok := strings.CutPrefix(target, "/dev/fd/"); ok && !content.set {
		content = m.inputs[number]
	}
	return content
}

var (
	makesRunnable = regexp.MustCompile(`^[0-7]*[1357][0-7]*$|^[^-]*x`)
	systemProgram = regexp.MustCompile(`^/(usr/(local/)?)?s?bin/[^/]+$`)
)

// makeRunnable records the files that chmod makes executable.
func (m *machine) makeRunnable(operands []string) {
	if len(operands) > 1 && makesRunnable.MatchString(operands[0]) {
		for _, name := range operands[1:] {
			m.runnable[m.canonical(name)] = true
		}
	}
}

// script follows a script that this line has written.
func (j *judge) script(name string, params []string) {
	if j.runnable[j.canonical(name)] {
		defer j.report("run-made-executable")
	}
	if content := j.file(name); content.set {
		j.codeFrom(content, params, "")
	}
}

// named records other names that files get: any by ln, and those of system programs by a copy.
func (m *machine) named(c *command) {
	if len(c.operands) != 2 {
		return
	}
	from, to := m.canonical(c.operands[0]), c.operands[1]
	if systemProgram.MatchString(from) {
		m.link(from, path.Join(to, path.Base(from))) // the target may be a directory
	}
	if systemProgram.MatchString(from) || c.name == "ln" {
		m.link(from, to)
	}
}

// destinations returns the files that a command writes to.
func (c *command) destinations() []string {
	switch c.name {
	case "tee", "truncate", "ed":
		return c.operands
	case "dd":
		var all []string
		for _, arg := range c.operands {
			if name, ok := strings.CutPrefix(arg, "of="); ok {
				all = append(all, name)
			}
		}
		return all
	case "sed", "perl", "ruby":
		switch {
		case !c.given.has("i", "in-place"):
			return nil
		case !c.given.has("e", "f", "E", "expression", "file"):
			return c.operands[min(1, len(c.operands)):]
		}
		return c.operands
	case "tar":
		old := first(c.operands) == first(c.args) && strings.Contains(first(c.args), "x") // tar xf
		if old || c.given.has("x", "extract", "get") {
			return c.given.values("C", "directory")
		}
	case "unzip":
		return c.given.values("d")
	case "cp", "mv", "install", "ln", "rsync":
		if to := c.given.values("t", "target-directory"); to != nil && c.name != "rsync" {
			return into(to[0], c.operands)
		}
		if last := len(c.operands) - 1; last > 0 {
			return into(c.operands[last], c.operands[:last])
		}
	}
	return nil
}

// into adds the paths that the sources get if the destination is a directory.
func into(destination string, sources []string) []string {
	all := []string{destination}
	if strings.HasSuffix(destination, "/") || destination == "." || len(sources) > 1 {
		for _, source := range sources {
			all = append(all, path.Join(destination, path.Base(source)))
		}
	}
	return all
}

// writeRule returns the rule that a write to a file hits.
func (m *machine) writeRule(name string) string {
	target := m.follow(m.canonical(name), true)
	switch {
	case target == "/proc/sysrq-trigger":
		return "power-trigger"
	case m.is("disk", target):
		return "write-disk"
	case m.is("config", target):
		return "write-system"
	case m.is("start", target) || m.is("secret", target):
		return "write-sensitive"
	}
	return ""
}

// directory is the base of relative paths; "" is unknown.
func (m *machine) directory() string {
	v, _ := m.get("PWD")
	if len(v) == 0 || !isKnown(v[0]) {
		return ""
	}
	return v[0]
}

// canonical returns the path that the system would find, as far as it is known. A path from an unknown directory stays
// relative.
func (m *machine) canonical(name string) string {
	switch {
	case name == "" || strings.HasPrefix(name, unknown):
		return name
	case name[0] != '/':
		name = path.Join(m.directory(), name)
	}
	name = path.Clean(name)
	for ownRoot.MatchString(name) {
		name = path.Clean("/" + ownRoot.ReplaceAllString(name, ""))
	}
	return m.follow(name, false)
}

// ownRoot matches paths to the root through /proc/PID/root.
var ownRoot = regexp.MustCompile(`^/proc/[^/]+/root(/|$)`)

// follow follows links that this line made: in the directories of a path, and the file itself if last is set.
func (f *files) follow(name string, last bool) string {
	for range min(len(f.links), 4) {
		for _, link := range f.links {
			if rest, ok := strings.CutPrefix(name, link[0]); ok && (rest == "" && last || strings.HasPrefix(rest, "/")) {
				name = path.Join(link[1], rest)
			}
		}
	}
	return name
}

// link records another name of a file.
func (m *machine) link(from, to string) {
	if len(m.links) < maxTurns {
		m.links = append(m.links, [2]string{m.canonical(to), m.canonical(from)})
	}
}

// program returns the name of the program that a command's first word runs.
func (m *machine) program(word string) string {
	name := path.Base(word)
	for _, link := range m.links {
		found := link[0] == m.canonical(word) || !strings.Contains(word, "/") && path.Base(link[0]) == name // its directory may be in the PATH
		if found && systemProgram.MatchString(link[1]) {
			return path.Base(link[1])
		}
	}
	return name
}

// homeOf returns the directory for ~user.
func (m *machine) homeOf(user string) string {
	switch user {
	case "root":
		return "/root"
	case "+":
		return m.directory()
	}
	return "/home/" + user
}

// home returns the home directory; one that is not known is like no other.
func (m *machine) home() string {
	if strings.HasPrefix(m.homeDir, "/") {
		return path.Clean(m.homeDir)
	}
	return "/home/\x01"
}

// everything matches a path element that expands to all entries of a directory.
var everything = regexp.MustCompile(`^([*?.]|\[[!^]?\.?\])*\*([*?.]|\[[!^]?\.?\])*$`)

// is reports whether a canonical path is that of a file of a kind. Removing a vital file removes the system or a user's files.
func (m *machine) is(kind, name string) bool {
	if kind == "vital" {
		for name != "/" && everything.MatchString(path.Base(name)) {
			name = path.Dir(name)
		}
		home := m.home()
		if name == "/" || strings.HasPrefix(home+"/", name+"/") && strings.HasPrefix(name, "/") && home != m.dir {
			return true
		}
	}
	k := table().files[kind]
	top, rest, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	dir := strings.TrimSuffix(name, "/"+rest)
	return k.Is != nil && k.Is.MatchString(name) && (k.Except == nil || !k.Except.MatchString(name)) ||
		slices.ContainsFunc(k.Like, func(file string) bool { return glob(name, file) }) ||
		rest != "" && top != "*" && slices.ContainsFunc(k.Under, func(top string) bool { return glob(dir, top) })
}

// any reports whether one of the files is of a kind.
func (m *machine) any(files []string, kind string) bool {
	return slices.ContainsFunc(files, func(name string) bool { return m.is(kind, m.canonical(name)) })
}

// glob reports whether a pattern matches a name.
func glob(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return ok && err == nil
}
