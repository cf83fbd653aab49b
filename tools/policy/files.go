package policy

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// procSubst judges <(...) or >(...) and gives it a name.
func (j *judge) procSubst(subst *syntax.ProcSubst) (name string, err error) {
	name = "/dev/fd/" + strconv.Itoa(1000+len(j.files)+len(j.sinks))
	if subst.Op == syntax.CmdOut {
		j.sinks[name] = subst.Stmts
		j.scope(func() stream { return j.stmts(subst.Stmts, unknownStream(0)) })
		return name, nil
	}
	out := j.scope(func() stream { return j.stmts(subst.Stmts, stream{}) })
	out.set = true
	j.keep(name, out)
	return name, nil
}

// keep records the content of a file.
func (j *judge) keep(name string, content stream) {
	if stmts, ok := j.sinks[name]; ok { // it is the input of commands
		delete(j.sinks, name)
		j.scope(func() stream { return j.stmts(stmts, content) })
	}
	if len(j.files) < maxWords {
		j.files[name] = content
	}
}

// file returns what this line wrote to a file, if it did.
func (j *judge) file(name string) stream {
	target := j.canonical(name)
	content := j.files[target]
	if number, ok := strings.CutPrefix(target, "/dev/fd/"); ok && !content.set {
		content = j.inputs[number]
	}
	if j.isSecret(target) {
		content.taint |= secret
	}
	return content
}

var (
	makesRunnable = regexp.MustCompile(`^[0-7]*[1357][0-7]*$|^[^-]*x`)
	systemProgram = regexp.MustCompile(`^/(usr/(local/)?)?s?bin/[^/]+$`)
)

// makeRunnable records the files that chmod makes executable.
func (c *call) makeRunnable() {
	if rest := c.operands(); len(rest) > 1 && makesRunnable.MatchString(rest[0]) {
		for _, name := range rest[1:] {
			c.j.runnable[c.j.canonical(name)] = true
		}
	}
}

// script follows a script that this line has written.
func (c *call) script(name string, params []string) {
	if c.j.runnable[c.j.canonical(name)] {
		defer c.j.report(madeRunnable)
	}
	if content := c.j.file(name); content.set {
		c.codeFrom(content, params, "")
	}
}

// named records other names that files get: any by ln, and those of system programs by a copy.
func (c *call) named() {
	rest := c.operands()
	if len(rest) != 2 {
		return
	}
	from := c.j.canonical(rest[0])
	if systemProgram.MatchString(from) {
		c.j.link(from, path.Join(rest[1], path.Base(from))) // the target may be a directory
	}
	if systemProgram.MatchString(from) || c.name == "ln" {
		c.j.link(from, rest[1])
	}
}

// destinations returns the files that a command writes to.
func (c *call) destinations() []string {
	given, rest := c.parse()
	value := func(names ...string) (all []string) {
		for _, o := range given {
			if slices.Contains(names, o.name) {
				all = append(all, o.value)
			}
		}
		return all
	}
	switch c.name {
	case "tee", "truncate", "ed":
		return rest
	case "dd":
		var all []string
		for _, arg := range rest {
			if name, ok := strings.CutPrefix(arg, "of="); ok {
				all = append(all, name)
			}
		}
		return all
	case "sed", "gsed", "perl", "ruby":
		if value("i", "in-place") == nil {
			return nil
		}
		if value("e", "f", "E", "expression", "file") == nil && len(rest) > 0 {
			return rest[1:]
		}
		return rest
	case "tar":
		if value("x", "extract", "get") != nil || len(rest) > 0 && !strings.HasPrefix(c.args[0], "-") && strings.Contains(rest[0], "x") {
			return value("C", "directory")
		}
	case "unzip":
		return value("d")
	case "cp", "mv", "install", "ln", "rsync":
		if to := value("t", "target-directory"); to != nil && c.name != "rsync" {
			return into(to[0], rest)
		}
		if len(rest) > 1 {
			return into(rest[len(rest)-1], rest[:len(rest)-1])
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

// writesTo judges a write to a file.
func (j *judge) writesTo(name string) {
	target := j.behind(j.canonical(name), true)
	switch {
	case j.isDisk(target):
		j.report(writeDisk)
	case target == "/proc/sysrq-trigger":
		j.report(writePower)
	case j.isSystemConfig(target):
		j.report(writeSystem)
	case j.isSensitive(target):
		j.report(writeSensitive)
	}
}
