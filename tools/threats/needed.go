package threats

import (
	"math"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/literals"
)

// needed returns texts in lower case of which every match of an expression has at least one, or nil where none are known. Most
// pages have none of a pattern's, and are looked through for these a hundred times faster than for the pattern itself.
func needed(re *syntax.Regexp) []string {
	return literals.Required(re, math.MaxInt, func(re *syntax.Regexp) (string, int) {
		text := strings.ToLower(string(re.Rune))
		return text, utf8.RuneCountInString(text)
	})
}
