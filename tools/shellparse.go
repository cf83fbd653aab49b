package tools

import (
	"regexp"

	"mvdan.cc/sh/v3/syntax"

	"trajgen/tools/policy"
)

// shellScript is what the checks need to know of a command line.
type shellScript struct {
	commands   [][]string // the words of each simple command as far as they are literal, without quotes
	background bool       // an '&' starts something in the background
	last       []string   // the simple command whose exit status is that of the whole, if known
}

// parseShell parses a command line as bash does. With a syntax error it returns the part before it, which bash runs, too,
// before it reports the error. It does not parse a line that is nested too deeply.
func parseShell(src string) (s shellScript) {
	stmts, err := policy.Parse(src)
	for _, stmt := range stmts {
		syntax.Walk(stmt, s.visit)
	}
	if n := len(stmts); n > 0 && err == nil {
		s.last = lastCommand(stmts[n-1])
	}
	return s
}

func (s *shellScript) visit(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.Stmt:
		s.background = s.background || n.Background
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			s.commands = append(s.commands, wordsOf(n))
		}
	}
	return true
}

func wordsOf(call *syntax.CallExpr) []string {
	words := make([]string, len(call.Args))
	for i, word := range call.Args {
		words[i] = plainWord(word.Parts)
	}
	return words
}

var escaped = regexp.MustCompile(`(?s)\\(.)`)

// plainWord returns the text of a word. Parts that only the shell knows become a question mark.
func plainWord(parts []syntax.WordPart) string {
	text := ""
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text += escaped.ReplaceAllString(p.Value, "$1")
		case *syntax.SglQuoted:
			text += p.Value
		case *syntax.DblQuoted:
			text += plainWord(p.Parts)
		default:
			text += "?"
		}
	}
	return text
}

// lastCommand finds the command with the exit status of the whole: the last one of a pipeline, and in a list with && the one
// before the last when the last hardly ever fails.
func lastCommand(stmt *syntax.Stmt) []string {
	if stmt == nil || stmt.Negated || stmt.Background {
		return nil
	}
	var inner []*syntax.Stmt
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return wordsOf(cmd)
	case *syntax.TestClause:
		return []string{"test"}
	case *syntax.TimeClause:
		return lastCommand(cmd.Stmt)
	case *syntax.Block:
		inner = cmd.Stmts
	case *syntax.Subshell:
		inner = cmd.Stmts
	case *syntax.BinaryCmd:
		last := lastCommand(cmd.Y)
		if cmd.Op == syntax.AndStmt && len(last) > 0 && (last[0] == "echo" || last[0] == "printf" || last[0] == "true") {
			return lastCommand(cmd.X)
		}
		return last
	}
	if len(inner) == 0 {
		return nil
	}
	return lastCommand(inner[len(inner)-1])
}
