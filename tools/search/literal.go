package search

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/literals"
)

// literal is a text to look for.
type literal struct {
	text []byte // in lower case with fold
	fold bool   // ignores the case of letters, which are ASCII
}

// maxLiterals is how many alternatives are searched separately.
const maxLiterals = 4

// required returns texts of which every match contains at least one; nil when none are known.
func required(tree *syntax.Regexp) []literal {
	return literals.Required(tree, maxLiterals, func(tree *syntax.Regexp) (literal, int) {
		fold, text := tree.Flags&syntax.FoldCase != 0, string(tree.Rune)
		if fold {
			text = foldable(text)
		}
		return literal{[]byte(text), fold}, len(text)
	})
}

// foldable returns the longest part of a text with as many bytes in either case: K and s have equivalents beyond ASCII.
func foldable(text string) string {
	parts := strings.FieldsFunc(string(lower([]byte(text))), func(c rune) bool {
		return c >= utf8.RuneSelf || c == 'k' || c == 's'
	})
	best := ""
	for _, part := range parts {
		if len(part) > len(best) {
			best = part
		}
	}
	return best
}

// lower converts ASCII letters only: İ would become an i, which does not match it.
func lower(text []byte) []byte {
	small := bytes.Clone(text)
	for i, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[i] = c + 'a' - 'A'
		}
	}
	return small
}
