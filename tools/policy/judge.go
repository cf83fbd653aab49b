package policy

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a value for text that only a run would tell. No command holds it: bash drops NUL.
const unknown = "\x00"

// The bounds of judging one command.
const (
	maxSteps = 4000 // statements and invocations
	maxDepth = 60   // code within code, functions within functions
	maxTurns = 24   // combinations of what variables may hold
	maxValue = MaxCommand
	maxWords = 256 // words that one word, or one file's lines, may become
)

// judge follows a command line. Its state is the shell's, as far as it can be told.
type judge struct {
	ctx    Context
	source string // the whole line
	worst  Verdict

	vars     map[string]binding
	zero     string   // $0
	params   []string // $1 and on
	funcs    map[string]*syntax.Stmt
	aliases  map[string]string
	files    map[string]stream // written by this line
	runnable map[string]bool   // made executable by this line
	active   []string          // functions that are being called
	pipes    int               // names that process substitutions got

	current  *syntax.Stmt
	beside   int // above 0 in a pipe or in the background
	detached int // above 0 in the background
	respawn  map[*syntax.Stmt]bool

	steps, depth int
	branch       int   // above 0 where it is not sure that the code runs
	pinned       taint // what the words of the command being read are made from
	contained    int   // above 0 in a container
	choices
}

// stream is what flows through a pipe, lies in a file or is put in the place of a command.
type stream struct {
	text string
	set  bool // there is one
	// either says that the lines of text are what it may be, one at a time.
	either bool
	taint
}

// taint says where text comes from.
type taint uint8

const (
	remote  taint = 1 << iota // from the network
	decoded                   // from an encoded form
	pids                      // from a search for processes
)

// report notes a rule that was hit. The first of the worst is kept.
func (j *judge) report(id string) {
	r := ruleByID[id]
	level := r.verdict
	if j.contained > 0 && level == Block {
		level = Ask // it is the container's, not the machine's
	}
	if level.Worse(j.worst.Verdict) {
		j.worst = Verdict{level, r.id, r.reason}
	}
}

// spend counts a step and says whether there is one left.
func (j *judge) spend() bool {
	if j.steps++; j.steps > maxSteps {
		j.report(tooComplex)
		return false
	}
	return true
}

// enter goes one level deeper, and says whether that is allowed. Who enters leaves with depth--.
func (j *judge) enter() bool {
	if j.depth++; j.depth > maxDepth {
		j.report(tooComplex)
		return false
	}
	return true
}

// code judges shell code. Unknown parts of it stand as a variable that nobody knows.
func (j *judge) code(text string, in stream) stream {
	defer func() { j.depth-- }()
	if !j.enter() {
		return stream{text: unknown, set: true}
	}
	if strings.Contains(text, unknown) {
		text = strings.ReplaceAll(text, unknown, "${"+unknownName+"}")
	}
	if j.steps += len(text) / 256; !j.spend() {
		return stream{text: unknown, set: true}
	}
	stmts, err := parse(text)
	out := j.stmts(stmts, in)
	if err != nil {
		j.report(unparsable)
		if j.worst.Rule == unparsable {
			j.worst.Reason = ruleByID[unparsable].reason + " (" + parseProblem(err) + ")"
		}
	}
	return out
}

// unknownName is a variable that is never set.
const unknownName = "__unknown__"

func (j *judge) stmts(stmts []*syntax.Stmt, in stream) stream {
	var out stream
	for _, stmt := range stmts {
		out = out.and(j.stmt(stmt, in))
	}
	return out
}

// and is what two commands print one after the other.
func (s stream) and(t stream) stream {
	switch {
	case !t.set:
		return s
	case !s.set:
		return t
	}
	text := unknown
	if len(s.text)+len(t.text) <= maxValue {
		text = s.text + t.text
	}
	return stream{text: text, set: true, taint: s.taint | t.taint}
}

// scope runs f like a subshell: it sees everything and leaves nothing behind, but for files.
func (j *judge) scope(f func() stream) stream {
	vars, params, funcs, aliases := maps.Clone(j.vars), j.params, maps.Clone(j.funcs), maps.Clone(j.aliases)
	out := f()
	j.vars, j.params, j.funcs, j.aliases = vars, params, funcs, aliases
	return out
}

// maybe runs f where it is not sure that its code runs.
func (j *judge) maybe(f func() stream) stream {
	j.branch++
	out := f()
	j.branch--
	return out
}

func (j *judge) stmt(stmt *syntax.Stmt, in stream) stream {
	if stmt == nil || !j.spend() {
		return stream{}
	}
	defer func() { j.depth-- }()
	if !j.enter() {
		return stream{}
	}
	if stmt.Background {
		j.beside++
		j.detached++
		defer func() { j.beside--; j.detached-- }()
	}
	var out stream
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr, *syntax.DeclClause, nil:
		j.current = stmt
		out = j.turns(func() stream { return j.simple(cmd, stmt, in) })
	default:
		var to outputs
		j.turns(func() stream { in, to = j.redirect(stmt.Redirs, in); return stream{} })
		out = j.compound(cmd, in)
		out = j.write(to, out)
	}
	return out
}

// simple is a simple command with its redirections.
func (j *judge) simple(cmd syntax.Command, stmt *syntax.Stmt, in stream) stream {
	in, to := j.redirect(stmt.Redirs, in)
	var out stream
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		out = j.call(cmd, in, to)
	case *syntax.DeclClause:
		j.declare(cmd)
	}
	return j.write(to, out)
}

func (j *judge) compound(cmd syntax.Command, in stream) stream {
	switch cmd := cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			return j.pipeline(cmd, in)
		}
		return j.list(cmd, in)
	case *syntax.Subshell:
		return j.scope(func() stream { return j.stmts(cmd.Stmts, in) })
	case *syntax.Block:
		return j.stmts(cmd.Stmts, in)
	case *syntax.IfClause:
		return j.ifClause(cmd, in)
	case *syntax.WhileClause:
		out := j.stmts(cmd.Cond, in)
		return out.and(j.maybe(func() stream { return j.stmts(cmd.Do, in) }))
	case *syntax.ForClause:
		return j.forClause(cmd, in)
	case *syntax.CaseClause:
		return j.caseClause(cmd, in)
	case *syntax.FuncDecl:
		j.define(cmd)
	case *syntax.TimeClause:
		return j.stmt(cmd.Stmt, in)
	case *syntax.CoprocClause:
		return j.scope(func() stream { return j.stmt(cmd.Stmt, stream{text: unknown, set: true}) })
	case *syntax.TestClause:
		j.visit(cmd.X)
	case *syntax.ArithmCmd:
		j.visit(cmd.X)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			j.visit(x)
		}
	}
	return stream{}
}

// visit judges the commands that are substituted in an expression.
func (j *judge) visit(node syntax.Node) {
	if node == nil {
		return
	}
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			j.scope(func() stream { return j.stmts(n.Stmts, stream{}) })
			return false
		case *syntax.ProcSubst:
			j.procSubst(n)
			return false
		}
		return true
	})
}

// chain lists the commands of a && b || c, or of a | b | c, without going deeper for each.
func chain(cmd *syntax.BinaryCmd, same func(syntax.BinCmdOperator) bool) []*syntax.Stmt {
	var links []*syntax.Stmt
	todo := []*syntax.Stmt{cmd.Y, cmd.X}
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if inner, ok := last.Cmd.(*syntax.BinaryCmd); ok && same(inner.Op) && len(last.Redirs) == 0 {
			todo = append(todo, inner.Y, inner.X)
			continue
		}
		links = append(links, last)
	}
	return links
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

func (j *judge) pipeline(cmd *syntax.BinaryCmd, in stream) stream {
	j.beside++
	defer func() { j.beside-- }()
	for _, link := range chain(cmd, isPipe) {
		in = j.scope(func() stream { return j.stmt(link, in) })
		if !in.set {
			in = stream{text: unknown, set: true, taint: in.taint}
		}
	}
	return in
}

func (j *judge) list(cmd *syntax.BinaryCmd, in stream) stream {
	var out stream
	for i, link := range chain(cmd, func(op syntax.BinCmdOperator) bool { return !isPipe(op) }) {
		run := func() stream { return j.stmt(link, in) }
		if i > 0 {
			out = out.and(j.maybe(run))
			continue
		}
		out = run()
	}
	return out
}

func (j *judge) ifClause(cmd *syntax.IfClause, in stream) stream {
	var out stream
	for ; cmd != nil && j.spend(); cmd = cmd.Else {
		out = out.and(j.stmts(cmd.Cond, in))
		out = out.and(j.maybe(func() stream { return j.stmts(cmd.Then, in) }))
	}
	return out
}

func (j *judge) forClause(cmd *syntax.ForClause, in stream) stream {
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		j.visit(cmd.Loop)
		return j.maybe(func() stream { return j.stmts(cmd.Do, in) })
	}
	items := j.params
	if iter.InPos.IsValid() {
		items = j.fields(iter.Items)
	}
	var out stream
	for i, item := range items {
		if i >= maxTurns {
			item = unknown
		}
		j.set(iter.Name.Value, binding{{words: []string{item}, taint: j.pinned}}, false)
		out = out.and(j.maybe(func() stream { return j.stmts(cmd.Do, in) }))
		if i >= maxTurns {
			break
		}
	}
	return out
}

func (j *judge) caseClause(cmd *syntax.CaseClause, in stream) stream {
	j.fields([]*syntax.Word{cmd.Word})
	var out stream
	for _, item := range cmd.Items {
		out = out.and(j.maybe(func() stream { return j.stmts(item.Stmts, in) }))
	}
	return out
}

// define keeps a function.
func (j *judge) define(cmd *syntax.FuncDecl) {
	if cmd.Name == nil {
		return
	}
	if j.funcs == nil {
		j.funcs = map[string]*syntax.Stmt{}
	}
	j.funcs[cmd.Name.Value] = cmd.Body
}

// again notes that a function starts itself. One that does so at two places, side by side with itself, fills the
// machine with processes.
func (j *judge) again() {
	if j.beside == 0 {
		return
	}
	if j.respawn == nil {
		j.respawn = map[*syntax.Stmt]bool{}
	}
	if j.respawn[j.current] = true; len(j.respawn) > 1 {
		j.report(forkBomb)
	}
}
