package policy

import (
	"strings"
	"unicode"
)

// clean takes out the bytes that mean something to the judge and nothing to a shell.
func clean(text string) string {
	return strings.NewReplacer(unknown, "", "\x00", "").Replace(text)
}

// unmask removes what hides a command from a reader: terminal escapes, invisible characters, and letters in full width.
func unmask(command string) string {
	masked := func(r rune) bool { return r == 0x1b || r > 0x7f }
	if strings.IndexFunc(command, masked) < 0 {
		return command
	}
	var b strings.Builder
	rest := command
	for rest != "" {
		if n := escapeLength(rest); n > 0 {
			rest = rest[n:]
			continue
		}
		r := []rune(rest[:min(len(rest), 4)])[0]
		size := len(string(r))
		if r == '\uFFFD' && !strings.HasPrefix(rest, "\uFFFD") {
			size = 1 // a byte that is no character
		}
		switch {
		case r >= 0xFF01 && r <= 0xFF5E:
			b.WriteRune(r - 0xFF01 + '!')
		case r == 0x3000 || r == 0x00A0:
			b.WriteByte(' ')
		case unicode.Is(unicode.Cf, r): // nobody sees it
		default:
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

// escapeLength is the length of the terminal escape that text begins with.
func escapeLength(text string) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
	case ']':
		if end := strings.IndexAny(text, "\a"); end > 0 {
			return end + 1
		}
	}
	return 2
}
