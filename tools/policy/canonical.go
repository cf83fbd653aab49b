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
	stmts, err := parse(command)
	if err != nil {
		return true // it may well
	}
	reads := false
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			call, ok := node.(*syntax.CallExpr)
			if !ok {
				return true
			}
			reads = reads || readsCommands(newJudge(Context{}).fields(call.Args...))
			return true
		})
	}
	return reads
}

func readsCommands(words []string) bool {
	for i, word := range words {
		name := word[strings.LastIndexByte(word, '/')+1:]
		if name == "ssh" || name == "su" || strings.Contains(name, unknown) {
			return true
		}
		if names[name] == "sh" {
			_, operands := getopt("sh", words[i+1:])
			return len(operands) == 0 || hasFlag(words[i+1:], "s")
		}
	}
	return false
}
