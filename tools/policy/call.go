package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is a program that is started, or a builtin.
type call struct {
	j          *judge
	name       string // without directory
	args       []string
	in         stream
	taint      taint // of the words
	background bool
}

// outputs are where a command writes to.
type outputs struct {
	files   []string // that its standard output goes to
	network bool     // it has a connection
}

// redirect judges redirections. It returns what the command reads, and where it writes.
func (j *judge) redirect(redirs []*syntax.Redirect, in stream) (stream, outputs) {
	var to outputs
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			in = stream{text: j.hereDocument(r), set: true, taint: j.pinned}
		case syntax.WordHdoc:
			in = stream{text: j.text(r.Word) + "\n", set: true, taint: j.pinned}
		case syntax.RdrIn:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			if in = j.file(target); isConnection(target) {
				in = stream{text: unknown, set: true, taint: remote}
			}
		case syntax.DplIn, syntax.DplOut:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			if r.Op == syntax.DplOut && target != "-" && strings.Trim(target, "0123456789-") != "" {
				j.writesTo(target)
				to.files = append(to.files, target)
			}
		default:
			target := j.text(r.Word)
			to.network = to.network || isConnection(target)
			j.writesTo(target)
			if r.N == nil || r.N.Value == "1" {
				to.files = append(to.files, target)
			}
		}
	}
	return in, to
}

// isConnection says whether bash makes a connection to another machine of a file name.
func isConnection(name string) bool {
	host, ok := strings.CutPrefix(name, "/dev/tcp/")
	if !ok {
		if host, ok = strings.CutPrefix(name, "/dev/udp/"); !ok {
			return false
		}
	}
	host, _, _ = strings.Cut(host, "/")
	return host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.")
}

func (j *judge) hereDocument(r *syntax.Redirect) string {
	quoted := false
	for _, part := range r.Word.Parts {
		lit, ok := part.(*syntax.Lit)
		quoted = quoted || !ok || strings.ContainsRune(lit.Value, '\\')
	}
	if !quoted || r.Hdoc == nil {
		return j.document(r.Hdoc)
	}
	var b strings.Builder
	for _, part := range r.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		}
	}
	return b.String()
}

// write puts what a command prints where it goes.
func (j *judge) write(to outputs, out stream) stream {
	if len(to.files) == 0 {
		return out
	}
	for _, name := range to.files {
		if out.set || out.taint != 0 {
			out.set = true
			j.keep(j.canonical(name), out)
		}
	}
	return stream{}
}

// call reads a simple command.
func (j *judge) call(cmd *syntax.CallExpr, in stream, to outputs) stream {
	if len(cmd.Args) == 0 {
		for _, assign := range cmd.Assigns {
			j.assign(assign)
		}
		return stream{}
	}
	if len(cmd.Assigns) > 0 { // for this command alone
		before := make(map[string]binding, len(cmd.Assigns))
		for _, assign := range cmd.Assigns {
			if assign.Name != nil {
				before[assign.Name.Value] = j.vars[assign.Name.Value]
			}
			j.assign(assign)
		}
		defer func() { j.restore(before) }()
	}
	words := j.fields(cmd.Args)
	if len(words) == 0 {
		return stream{}
	}
	if base := path.Base(words[0]); to.network && (isShell(base) || base == "exec") {
		j.report(reverseShell)
	}
	return j.invoke(words, in, j.pinned, j.detached > 0)
}

// restore takes back what was assigned for one command alone.
func (j *judge) restore(before map[string]binding) {
	for name, was := range before {
		if was == nil {
			delete(j.vars, name)
		} else {
			j.vars[name] = was
		}
	}
}

func (j *judge) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	name := a.Name.Value
	if a.Array != nil {
		var elems []*syntax.Word
		for _, elem := range a.Array.Elems {
			if elem.Value != nil {
				elems = append(elems, elem.Value)
			}
		}
		words := j.fields(elems)
		if a.Append {
			v, _ := j.get(name)
			words = append(append([]string{}, v.words...), words...)
		}
		j.set(name, binding{{words: words, array: true, taint: j.pinned}}, false)
		return
	}
	text := j.text(a.Value)
	if a.Append {
		if v, have := j.get(name); have {
			text = strings.Join(v.words, " ") + text
		}
	}
	if a.Index != nil {
		j.set(name, binding{{words: []string{text}, array: true, taint: j.pinned}}, true)
		return
	}
	j.setText(name, text, j.pinned)
}

// declare is export, declare, local and readonly.
func (j *judge) declare(cmd *syntax.DeclClause) {
	for _, arg := range cmd.Args {
		if arg.Naked && arg.Value != nil {
			word := j.text(arg.Value) // export "$x"
			if name, text, ok := strings.Cut(word, "="); ok {
				j.setText(name, text, j.pinned)
			}
			continue
		}
		j.assign(arg)
	}
}

// invoke judges a command by its words. Prefixes such as sudo come back here with what they start.
func (j *judge) invoke(words []string, in stream, from taint, background bool) stream {
	defer func() { j.depth-- }()
	if !j.enter() || len(words) == 0 || !j.spend() {
		return stream{text: unknown, set: true}
	}
	name := words[0]
	if code, ok := j.aliases[name]; ok && !j.calling(name) {
		return j.during(name, func() stream { return j.code(code+" "+quoteAll(words[1:]), in) })
	}
	body, ok := j.funcs[name]
	if ok && slices.Contains(j.active, name) {
		j.again()
	}
	if ok && !j.calling(name) {
		return j.during(name, func() stream {
			params := j.params
			j.params = words[1:]
			defer func() { j.params = params }()
			return j.stmt(body, in)
		})
	}
	c := &call{j: j, name: path.Base(name), args: words[1:], in: in, taint: from, background: background}
	if strings.ContainsAny(c.name, unknown+"*?[") && c.name != "[" && c.name != "[[" {
		return c.guess(name)
	}
	c.judge()
	if strings.Contains(name, "/") {
		c.script(name, c.args)
	}
	return c.run()
}

func (j *judge) calling(name string) bool {
	n := 0
	for _, active := range j.active {
		if active == name {
			n++
		}
	}
	return n > 1
}

func (j *judge) during(name string, f func() stream) stream {
	j.active = append(j.active, name)
	defer func() { j.active = j.active[:len(j.active)-1] }()
	return f()
}

// judge asks the rules for this program.
func (c *call) judge() {
	for _, r := range ruleIndex[c.name] {
		if r.match(c) {
			c.j.report(r.id)
		}
	}
}

// guess judges a command whose name is not all known: every program that it may be.
func (c *call) guess(word string) stream {
	pattern := strings.ReplaceAll(c.name, unknown, "*")
	if strings.Trim(pattern, "*?") == "" {
		switch {
		case c.taint&remote != 0:
			c.j.report(remoteCode)
		case c.taint&decoded != 0:
			c.j.report(decodedCode)
		}
		if c.flag("rR", "recursive") {
			c.name = "rm"
			if c.anyPath(c.operands(""), c.j.isVital) {
				c.j.report(deleteSystem)
			}
		}
		c.j.report(unknownCommand)
		return stream{text: unknown, set: true, taint: c.taint}
	}
	names := append(sortedNames, "sh", "bash", "python3", "eval", "sudo")
	for _, name := range names {
		if glob(pattern, name) {
			guessed := *c
			guessed.name = name
			guessed.judge()
			if c.j.spend() && (isShell(name) || name == "find") {
				guessed.run()
			}
		}
	}
	return stream{text: unknown, set: true, taint: c.taint}
}

// flag says whether an option was given: one of the letters, alone or with others behind one dash, or one of the long
// names, which may be cut short.
func (c *call) flag(letters string, long ...string) bool { return hasFlag(c.args, letters, long...) }

func hasFlag(args []string, letters string, long ...string) bool {
	for _, arg := range args {
		if len(arg) < 2 || arg[0] != '-' {
			continue
		}
		if arg[1] != '-' {
			if strings.ContainsAny(arg[1:], letters) {
				return true
			}
			continue
		}
		if arg == "--" {
			return false
		}
		name, _, _ := strings.Cut(arg[2:], "=")
		for _, l := range long {
			if name == l || len(name) >= 3 && strings.HasPrefix(l, name) {
				return true
			}
		}
	}
	return false
}

// operands are the arguments that are no options. valued are the letters of options that take the next argument.
func (c *call) operands(valued string) []string { return operands(c.args, valued) }

func operands(args []string, valued string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return append(rest, args[i+1:]...)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		case arg[1] != '-' && strings.IndexByte(valued, arg[len(arg)-1]) >= 0:
			i++
		}
	}
	return rest
}

// after skips options, and n operands, and returns what comes then.
func after(args []string, valued string, long []string, n int) []string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			i++
			return args[min(i+n, len(args)):]
		case len(arg) < 2 || arg[0] != '-':
			if n == 0 {
				return args[i:]
			}
			n--
		case arg[1] == '-':
			for _, name := range long {
				if arg == "--"+name {
					i++
					break
				}
			}
		case strings.IndexByte(valued, arg[len(arg)-1]) >= 0 && (len(arg) == 2 || strings.IndexByte(valued, arg[1]) < 0):
			i++
		}
	}
	return nil
}

// anyPath says whether one of the names leads to a path that test is true of.
func (c *call) anyPath(names []string, test func(string) bool) bool {
	for _, name := range names {
		if test(c.j.canonical(name)) {
			return true
		}
	}
	return false
}

// has says whether an argument is one of the words.
func (c *call) has(words ...string) bool { return has(c.args, words...) }

func has(args []string, words ...string) bool {
	for _, arg := range args {
		for _, word := range words {
			if arg == word {
				return true
			}
		}
	}
	return false
}

// quoteAll writes words as shell code.
func quoteAll(words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString("\"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(word) + "\" ")
	}
	return b.String()
}
