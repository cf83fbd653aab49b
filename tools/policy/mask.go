package policy

import (
	"regexp"
	"strings"
	"unicode"
)

var cleaner = strings.NewReplacer(unknown, "", "\x00", "")

// clean removes the bytes that have a meaning for the judge.
func clean(text string) string { return cleaner.Replace(text) }

var terminalEscape = regexp.MustCompile(`\x1b(\[[^@-~]*[@-~]|\][^\x07]*\x07|.|$)`)

// unmask removes what hides a command from a reader: terminal escapes, invisible characters, and full-width letters.
func unmask(command string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xFF01 && r <= 0xFF5E:
			return r - 0xFF01 + '!'
		case r == 0x3000 || r == 0x00A0:
			return ' '
		case unicode.Is(unicode.Cf, r): // invisible
			return -1
		}
		return r
	}, terminalEscape.ReplaceAllString(command, ""))
}
