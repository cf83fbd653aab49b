package policy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// errTooComplex is code that the parser is not given: a stack that overflows ends the whole process.
var errTooComplex = errors.New("it is too long or too deeply nested")

// parse reads shell code. Bash runs what it has read when it meets an error, line by line, so what comes before one is
// returned with it.
func parse(code string) (stmts []*syntax.Stmt, err error) {
	if len(code) > MaxCommand || tooDeep(code) {
		return nil, errTooComplex
	}
	defer func() { // the parser is not ours, and panics at some texts
		if value := recover(); value != nil {
			err = fmt.Errorf("the parser gives up: %v", value)
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	for stmt, err := range parser.StmtsSeq(strings.NewReader(code)) {
		if err != nil {
			return stmts, err // the parser may hold half a word, and is not used again
		}
		stmts = append(stmts, stmt)
	}
	parsers.Put(parser)
	return stmts, nil
}

// tooDeep says whether parentheses are opened and not closed in a way that takes a parser long. Those in a text or a
// script that is written to a file are closed sooner or later.
func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		}
		if depth > 500 {
			return true
		}
	}
	return strings.Count(text, "`") > 2000
}

// parseProblem words a syntax error.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return parse.Text
	}
	return err.Error()
}
