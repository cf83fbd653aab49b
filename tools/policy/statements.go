package policy

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func (j *judge) stmts(stmts []*syntax.Stmt, in stream) (out stream) {
	for _, stmt := range stmts {
		out = out.and(j.stmt(stmt, in))
	}
	return out
}

func (j *judge) stmt(stmt *syntax.Stmt, in stream) stream {
	if stmt == nil || !j.spend() {
		return stream{}
	}
	if content, ok := j.inputs["0"]; ok && !in.set {
		in = content
	}
	if stmt.Background {
		j.beside++
		j.detached++
		defer func() { j.beside--; j.detached-- }()
	}
	return j.eachTurn(func() stream {
		in, to := j.redirect(stmt.Redirs, in)
		out := j.command(stmt.Cmd, in, to)
		for _, name := range to.files {
			if out.set {
				j.keep(j.canonical(name), out)
			}
		}
		if len(to.files) > 0 {
			return stream{}
		}
		return out
	})
}

func (j *judge) command(cmd syntax.Command, in stream, to outputs) (out stream) {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		return j.call(cmd, in, to)
	case *syntax.DeclClause:
		for _, arg := range cmd.Args {
			j.assign(arg)
		}
	case *syntax.BinaryCmd:
		return j.binary(cmd, in)
	case *syntax.Subshell:
		return j.subshell(func() stream { return j.stmts(cmd.Stmts, in) })
	case *syntax.Block:
		return j.stmts(cmd.Stmts, in)
	case *syntax.IfClause:
		for ; cmd != nil && j.spend(); cmd = cmd.Else {
			out = out.and(j.stmts(cmd.Cond, in)).and(j.maybe(func() stream { return j.stmts(cmd.Then, in) }))
		}
	case *syntax.WhileClause:
		out = j.stmts(cmd.Cond, in)
		left := -1
		for turn := 0; turn < maxTurns && left != len(j.params); turn++ { // there is a shift in it
			left = len(j.params)
			out = out.and(j.maybe(func() stream { return j.stmts(cmd.Do, in) }))
		}
	case *syntax.ForClause:
		return j.forClause(cmd, in)
	case *syntax.CaseClause:
		j.visit(cmd.Word)
		for _, item := range cmd.Items {
			out = out.and(j.maybe(func() stream { return j.stmts(item.Stmts, in) }))
		}
	case *syntax.FuncDecl:
		if cmd.Name != nil {
			j.funcs[cmd.Name.Value] = cmd.Body
		}
	case *syntax.TimeClause:
		return j.stmt(cmd.Stmt, in)
	case *syntax.CoprocClause:
		return j.subshell(func() stream { return j.stmt(cmd.Stmt, stream{unknown, true}) })
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		j.visit(cmd)
	}
	return out
}

// visit judges the commands that are substituted in an expression.
func (j *judge) visit(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			j.subshell(func() stream { return j.stmts(n.Stmts, stream{}) })
			return false
		case *syntax.ProcSubst:
			_, _ = newEnvironment(j).procSubst(n)
			return false
		}
		return true
	})
}

func (j *judge) binary(cmd *syntax.BinaryCmd, in stream) (out stream) {
	if cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll {
		out = j.stmt(cmd.X, in)
		return out.and(j.maybe(func() stream { return j.stmt(cmd.Y, in) }))
	}
	j.beside++
	for _, part := range []*syntax.Stmt{cmd.X, cmd.Y} {
		if in = j.subshell(func() stream { return j.stmt(part, in) }); !in.set {
			in = stream{unknown, true}
		}
	}
	j.beside--
	return in
}

func (j *judge) forClause(cmd *syntax.ForClause, in stream) (out stream) {
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		j.visit(cmd.Loop)
		return j.maybe(func() stream { return j.stmts(cmd.Do, in) })
	}
	items := j.params
	if iter.InPos.IsValid() {
		items = j.fields(iter.Items...)
	}
	if len(items) > maxTurns {
		items = append(items[:maxTurns:maxTurns], unknown)
	}
	for _, item := range items {
		j.set(iter.Name.Value, value{item})
		out = out.and(j.maybe(func() stream { return j.stmts(cmd.Do, in) }))
	}
	return out
}

// outputs are the targets of a command's output.
type outputs struct {
	files   []string // files that its standard output goes to
	network bool     // it writes to a network connection
}

// redirect judges redirections. It returns the command's input and its outputs.
func (j *judge) redirect(redirs []*syntax.Redirect, in stream) (stream, outputs) {
	var to outputs
	for _, r := range redirs {
		target := j.text(r.Word)
		connects := j.is("connection", target)
		to.network = to.network || connects
		var content stream
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			switch end := r.Word.Lit(); {
			case r.Hdoc == nil:
			case end == "" || strings.Contains(end, `\`): // the end marker is quoted
				content.text = r.Hdoc.Lit()
			default:
				content.text = newEnvironment(j).one(r.Hdoc, expand.Document)
			}
			content.set = true
		case syntax.WordHdoc:
			content = stream{target + "\n", true}
		case syntax.RdrIn:
			content = j.file(target)
			switch {
			case connects:
				content = stream{unknown + remote, true}
			case !content.set && j.is("secret", j.canonical(target)):
				content = stream{unknown + secret, true}
			}
		case syntax.DplIn:
			var ok bool
			if content, ok = j.inputs[target]; !ok {
				continue
			}
		default:
			if r.Op == syntax.DplOut && strings.Trim(target, "0123456789-") == "" {
				continue
			}
			if j.report(j.writeRule(target)); r.N == nil || r.N.Value == "1" {
				to.files = append(to.files, target)
			}
			continue
		}
		if r.N == nil || r.N.Value == "0" {
			in = content
		} else {
			j.inputs[r.N.Value] = content
		}
	}
	return in, to
}
