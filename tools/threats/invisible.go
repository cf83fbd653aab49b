package threats

import (
	"strings"
	"unicode"
)

// Invisible finds the first character that is invisible or changes the direction of text, unless the surrounding text needs it.
func Invisible(text string) (rune, bool) {
	runes := []rune(text)
	rightToLeft := strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko)
	})
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		if !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
			unicode.Is(unicode.Prepended_Concatenation_Mark, r) { // it is visible
			continue
		}
		switch {
		case r == zeroWidthNonJoiner || r == zeroWidthJoiner:
			if i == 0 || i == len(runes)-1 || !joinable(runes[i-1]) || !joinable(runes[i+1]) {
				return r, true
			}
		case r == '\u200e' || r == '\u200f' || r == '\u061c': // direction marks
			if !rightToLeft {
				return r, true
			}
		case unicode.Is(unicode.Variation_Selector, r): // a single one selects how a character looks
			if i == 0 || unicode.IsSpace(runes[i-1]) || unicode.Is(unicode.Variation_Selector, runes[i-1]) {
				return r, true
			}
		case isTag(r) && i > 0 && runes[i-1] == blackFlag:
			n := tagged(runes[i:])
			if n == 0 {
				return r, true
			}
			i += n - 1
		default:
			return r, true
		}
	}
	return 0, false
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	blackFlag          = '\U0001F3F4'
	endOfTags          = '\U000E007F'
	maxTags            = 7 // of a flag, with their end: gbsct is Scotland
)

// joinable reports whether joiners may be next to a character: emoji, and letters of the many scripts beyond ASCII.
func joinable(r rune) bool {
	return r > unicode.MaxASCII && r != zeroWidthNonJoiner && r != zeroWidthJoiner && !unicode.IsSpace(r)
}

func isTag(r rune) bool { return r >= '\U000E0020' && r <= endOfTags }

// tagged returns how many tags make the flag of a region out of the black flag, or 0.
func tagged(runes []rune) int {
	for i, r := range runes[:min(len(runes), maxTags)] {
		switch {
		case r == endOfTags && i > 2:
			return i + 1
		case r < '\U000E0061' || r > '\U000E007A': // letters
			return 0
		}
	}
	return 0
}
