package policy

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// procSubst judges <(...) or >(...) and gives it a name.
func (j *judge) procSubst(subst *syntax.ProcSubst) string {
	in := stream{}
	if subst.Op == syntax.CmdOut {
		in = stream{text: unknown, set: true}
	}
	out := j.scope(func() stream { return j.stmts(subst.Stmts, in) })
	j.pipes++
	name := "/dev/fd/" + strconv.Itoa(1000+j.pipes)
	if subst.Op == syntax.CmdOut {
		if j.sinks == nil {
			j.sinks = map[string][]*syntax.Stmt{}
		}
		j.sinks[name] = subst.Stmts
		return name
	}
	out.set = true
	j.keep(name, out)
	return name
}

// keep notes what a file holds.
func (j *judge) keep(name string, content stream) {
	if j.files == nil {
		j.files = map[string]stream{}
	}
	if stmts, ok := j.sinks[name]; ok { // it flows into commands
		delete(j.sinks, name)
		j.scope(func() stream { return j.stmts(stmts, content) })
	}
	if len(j.files) < maxWords {
		j.files[name] = content
	}
}

// file is what this line wrote to a file, if it did.
func (j *judge) file(name string) stream {
	target := j.canonical(name)
	content := j.files[target]
	if number, ok := strings.CutPrefix(target, "/dev/fd/"); ok && !content.set {
		content = j.inputs[number]
	}
	if isSecret(target) {
		content.taint |= secret
	}
	return content
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

// script follows a file of commands that this line itself has written.
func (c *call) script(name string, params []string) {
	file := c.j.canonical(name)
	if c.j.runnable[file] {
		defer c.j.report(madeRunnable)
	}
	if content := c.j.file(name); content.set {
		c.codeFrom(content, params, false)
	}
}

// copyProgram notes the other names that programs of the system are given.
func (c *call) copyProgram() {
	rest := c.operands("")
	if len(rest) != 2 {
		return
	}
	if source := c.j.canonical(rest[0]); c.name == "ln" && len(c.j.links) < maxTurns {
		c.j.links = append(c.j.links, [2]string{c.j.canonical(rest[1]), source})
	}
	c.j.rename(rest[0], rest[1])
}

// rename notes that a program of the system lies at another place, too.
func (j *judge) rename(from, to string) {
	source, target := j.canonical(from), j.canonical(to)
	switch path.Dir(source) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin":
	default:
		return
	}
	if j.copies == nil {
		j.copies = map[string]string{}
	}
	for _, file := range []string{target, target + "/" + path.Base(source)} {
		j.copies[file] = path.Base(source)
		j.copies[path.Base(file)] = path.Base(source) // it may lie in the PATH
	}
}

// behind follows the links that this line made: those on the way to a file, and the file itself if last is set.
func (j *judge) behind(name string, last bool) string {
	for range min(len(j.links), 4) {
		before := name
		for _, link := range j.links {
			if rest, ok := strings.CutPrefix(name, link[0]); ok && (rest == "" && last || strings.HasPrefix(rest, "/")) {
				name = path.Join(link[1], rest)
			}
		}
		if name == before {
			break
		}
	}
	return name
}
