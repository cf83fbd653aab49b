package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Canonical writes a command line the same way however it was spaced, so that an answer to one is an answer to the
// other. What is no bash stays as it is.
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

// opensShell says whether a command line starts a shell, or a program like one, that reads commands from its input.
func opensShell(command string) bool {
	j := newJudge(Context{})
	j.code(clean(command), stream{})
	return j.opens || j.worst.Rule == unparsable || j.worst.Rule == tooComplex // it may well
}
