package threats

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// needed returns texts in lower case of which every match of an expression has at least one, or nil where none are known. Most
// pages have none of a pattern's, and are looked through for these a hundred times faster than for the pattern itself.
func needed(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat: // any part will do: the one whose texts are the longest is the rarest
		var best []string
		for _, sub := range re.Sub {
			if texts := needed(sub); shortest(texts) > shortest(best) {
				best = texts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := needed(sub)
			if texts == nil {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest text, 0 of none.
func shortest(texts []string) int {
	least := 0
	for i, text := range texts {
		if n := utf8.RuneCountInString(text); i == 0 || n < least {
			least = n
		}
	}
	return least
}
