package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Canonical removes differences in spacing from a command line, so that an answer about one spelling holds for the others. It
// returns text that is not bash unchanged.
func Canonical(command string) string {
	stmts, err := parse(command)
	if err != nil {
		return strings.TrimSpace(command)
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, &syntax.File{Stmts: stmts}); err != nil {
		return strings.TrimSpace(command)
	}
	return strings.TrimSpace(b.String())
}

// opensShell reports whether a command line starts a shell, or a similar program, that reads commands from its input.
func opensShell(command string) bool {
	j := newJudge(Context{})
	j.code(clean(command), stream{})
	return j.opens || j.worst.Rule == unparsable || j.worst.Rule == tooComplex // it may
}
