package tools

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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
	if nesting(src) > maxNesting {
		if src = withoutHeredocs(src); nesting(src) > maxNesting {
			return s
		}
	}
	// A panic of the parser on a strange command must not end the program.
	defer func() { _ = recover() }()
	// With an error, the parser also returns what it has parsed.
	file, err := parseBash(src)
	for _, stmt := range file.Stmts {
		syntax.Walk(stmt, s.visit)
	}
	if n := len(file.Stmts); n > 0 && err == nil {
		s.last = lastCommand(file.Stmts[n-1])
	}
	return s
}

func parseBash(src string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
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

// plainWord returns the text of a word. Parts that only the shell knows become a question mark.
func plainWord(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			writeUnescaped(&b, p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(plainWord(p.Parts))
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// writeUnescaped removes the backslashes of unquoted text.
func writeUnescaped(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
}

// lastCommand finds the command with the exit status of the whole: the last one of a pipeline, and in a list with && the one
// before the last when the last hardly ever fails.
func lastCommand(stmt *syntax.Stmt) []string {
	if stmt == nil || stmt.Negated || stmt.Background {
		return nil
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return wordsOf(cmd)
	case *syntax.TestClause:
		return []string{"test"}
	case *syntax.TimeClause:
		return lastCommand(cmd.Stmt)
	case *syntax.Block:
		if n := len(cmd.Stmts); n > 0 {
			return lastCommand(cmd.Stmts[n-1])
		}
	case *syntax.Subshell:
		if n := len(cmd.Stmts); n > 0 {
			return lastCommand(cmd.Stmts[n-1])
		}
	case *syntax.BinaryCmd:
		last := lastCommand(cmd.Y)
		if cmd.Op == syntax.AndStmt && len(last) > 0 && (last[0] == "echo" || last[0] == "printf" || last[0] == "true") {
			return lastCommand(cmd.X)
		}
		return last
	}
	return nil
}

// maxNesting bounds the parser's recursion: each level takes kilobytes of stack, and a stack overflow ends the whole process.
const maxNesting = 4096

// nesting returns an upper bound of how deep a script is nested: it counts all that can open a level.
func nesting(src string) int {
	n := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '[', '$', '`', '!', '?', '=', '*', '&', '|', '+', '-', '~', ',':
			n++
		}
	}
	for _, word := range []string{"if", "while", "until", "for", "case", "do", "then", "time", "coproc", "function"} {
		if n += strings.Count(src, word); n > maxNesting {
			return n
		}
	}
	return n
}

var heredocStart = regexp.MustCompile(`<<-?[ \t]*\\?['"]?([A-Za-z0-9_.]+)['"]?`)

// withoutHeredocs removes the lines of here-documents, which make up most of a long command.
func withoutHeredocs(src string) string {
	var b strings.Builder
	end := ""
	for line := range strings.Lines(src) {
		text := strings.TrimRight(line, "\n")
		switch {
		case end != "" && strings.TrimLeft(text, "\t") != end:
			continue
		case end != "":
			end = ""
		default:
			if match := heredocStart.FindStringSubmatch(text); match != nil {
				end = match[1]
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
