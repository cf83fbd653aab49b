package policy

import "mvdan.cc/sh/v3/syntax"

func (j *judge) stmts(stmts []*syntax.Stmt, in stream) stream {
	var out stream
	for _, stmt := range stmts {
		out = out.and(j.stmt(stmt, in))
	}
	return out
}

func (j *judge) stmt(stmt *syntax.Stmt, in stream) stream {
	defer func() { j.depth-- }()
	if !j.enter() || stmt == nil || !j.spend() {
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
	return j.turns(func() stream {
		in, to := j.redirect(stmt.Redirs, in)
		return j.write(to, j.command(stmt, in, to))
	})
}

func (j *judge) command(stmt *syntax.Stmt, in stream, to outputs) (out stream) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		j.current = stmt
		return j.call(cmd, in, to)
	case *syntax.DeclClause:
		j.declare(cmd)
	case *syntax.BinaryCmd:
		return j.binary(cmd, in)
	case *syntax.Subshell:
		return j.scope(func() stream { return j.stmts(cmd.Stmts, in) })
	case *syntax.Block:
		return j.stmts(cmd.Stmts, in)
	case *syntax.IfClause:
		for ; cmd != nil && j.spend(); cmd = cmd.Else {
			out = out.and(j.stmts(cmd.Cond, in))
			out = out.and(j.maybe(func() stream { return j.stmts(cmd.Then, in) }))
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
		return j.scope(func() stream { return j.stmt(cmd.Stmt, unknownStream(0)) })
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
			j.scope(func() stream { return j.stmts(n.Stmts, stream{}) })
			return false
		case *syntax.ProcSubst:
			_, _ = j.procSubst(n)
			return false
		}
		return true
	})
}

// links returns the commands of a && b || c, or of a | b | c, without recursion.
func links(cmd *syntax.BinaryCmd) []*syntax.Stmt {
	var all []*syntax.Stmt
	todo := []*syntax.Stmt{cmd.Y, cmd.X}
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if inner, ok := last.Cmd.(*syntax.BinaryCmd); ok && isPipe(inner.Op) == isPipe(cmd.Op) && len(last.Redirs) == 0 {
			todo = append(todo, inner.Y, inner.X)
			continue
		}
		all = append(all, last)
	}
	return all
}

func isPipe(op syntax.BinCmdOperator) bool { return op == syntax.Pipe || op == syntax.PipeAll }

func (j *judge) binary(cmd *syntax.BinaryCmd, in stream) (out stream) {
	if isPipe(cmd.Op) {
		j.beside++
		defer func() { j.beside-- }()
	}
	for i, link := range links(cmd) {
		run := func() stream { return j.stmt(link, in) }
		switch {
		case isPipe(cmd.Op):
			if out = j.scope(run); !out.set {
				out = unknownStream(out.taint)
			}
			in = out
		case i == 0:
			out = run()
		default:
			out = out.and(j.maybe(run))
		}
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
		items = j.fields(iter.Items...)
	}
	var out stream
	for i, item := range items {
		if i >= maxTurns {
			item = unknown
		}
		j.set(iter.Name.Value, textValue(item, j.pinned))
		out = out.and(j.maybe(func() stream { return j.stmts(cmd.Do, in) }))
		if i >= maxTurns {
			break
		}
	}
	return out
}

// again records that a function calls itself. A function that does so twice, in parallel with itself, is a fork bomb.
func (j *judge) again() {
	if j.beside == 0 {
		return
	}
	if j.respawn[j.current] = true; len(j.respawn) > 1 {
		j.report(forkBomb)
	}
}
