package policy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// errTooComplex is the error for code that could overflow the parser's stack, which would end the whole process.
var errTooComplex = errors.New("it is too long or too deeply nested")

// parse parses shell code. Bash runs the lines before a syntax error, so parse returns them with the error.
func parse(code string) (stmts []*syntax.Stmt, err error) {
	if len(code) > MaxCommand || tooDeep(code) {
		return nil, errTooComplex
	}
	defer func() { // the parser is a library, and panics on some texts
		if value := recover(); value != nil {
			err = fmt.Errorf("the parser gives up: %v", value)
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	for stmt, err := range parser.StmtsSeq(strings.NewReader(code)) {
		if err != nil {
			return stmts, err // the parser may be in the middle of a word, and is not used again
		}
		stmts = append(stmts, stmt)
	}
	parsers.Put(parser)
	return stmts, nil
}

// tooDeep reports whether a text opens so many parentheses without closing them that a parser takes long. It allows for those
// in quoted text or scripts, which are closed sooner or later.
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

// parseProblem describes a syntax error.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return parse.Text
	}
	return err.Error()
}
