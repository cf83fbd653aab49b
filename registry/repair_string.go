package registry

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// mark is the opening of a string, and the marks that may end it.
type mark struct {
	opens, ends string
	long        bool // with others of its kind inside
}

var marks = []mark{
	{`"""`, `"""`, true}, {`'''`, `'''`, true}, {`"`, `"`, false}, {"'", "'", false}, {"`", "`", false},
	{"“", "”", false}, {"”", "”", false}, {"‘", "’", false}, {"’", "’", false},
}

// markAt is the mark that a text begins with, if any. An empty string is not the beginning of a long mark.
func markAt(text string) mark {
	for _, m := range marks {
		if strings.HasPrefix(text, m.opens) && (!m.long || strings.Contains(text[len(m.opens):], m.ends)) {
			return m
		}
	}
	return mark{}
}

// string reads a string up to the first mark that ends it, and writes it as JSON does.
func (r *repairer) string() (string, error) {
	m := markAt(r.text[r.pos:])
	start := r.pos + len(m.opens)
	for at := start; at < len(r.text); at++ {
		if strings.HasPrefix(r.text[at:], m.ends) {
			r.pos = at + len(m.ends)
			if m.long && (r.text[start] == m.opens[0] || strings.HasPrefix(r.text[r.pos:], m.opens[:1])) {
				return "", errUnclear // four quotes: which of them are the mark?
			}
			return r.spell(r.text[start:at], m.opens[0]), nil
		}
		if r.text[at] == '\\' {
			at++
		}
	}
	r.pos = len(r.text)
	return "", errCutOff
}

// spell writes the text between two marks as JSON.
func (r *repairer) spell(text string, mark byte) string {
	r.signs.look(text, mark)
	var b strings.Builder
	b.WriteByte('"')
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case char == '\\':
			size = r.signs.escape(&b, text[at:], mark)
		case char == '"':
			b.WriteString(`\"`)
		case char < ' ':
			b.WriteString(inner(text[at : at+size]))
		default:
			b.WriteString(text[at : at+size])
		}
		at += size
	}
	return b.String() + `"`
}

// signs are hints in the strings of a text about how it was escaped. A single backslash may belong to the content or be an escape
// of JSON; all backslashes of a text are read in the same way, and if that is unclear, the text is refused.
type signs struct {
	bare, lines, controls bool // quotes, line ends and other control characters that are not escaped
	quotes                bool // \", or \' in single quotes
	free, freed           bool // " and \" in single quotes, where both are a quote
	doubled               bool // \\
	known                 bool // \n and other escapes of JSON
	other                 bool // \d and other sequences that are not escapes of JSON
	foreign               bool // \x1b and other escapes of other languages
	outside               bool // a \n outside of all quotes, where source code never has one: an escaped line end
	escaped, plain        [len(tooMuch)]int
}

// tooMuch are the characters that models escape although JSON does not: \' is an apostrophe, unless it is a backslash
// that should have been escaped.
const tooMuch = "'`$_!"

// look notes the signs of a string.
func (s *signs) look(text string, mark byte) {
	var q, bare quoting // with and without the escaped quotes
	within := false     // within quotes, not counting apostrophes: one shell quote may end within another's text
	for at := 0; at < len(text); at++ {
		c := text[at]
		if i := strings.IndexByte(tooMuch, c); i >= 0 && c != mark {
			s.plain[i]++
		}
		q.step(text, at)
		bare.step(text, at)
		within = within != (c == '"')
		switch {
		case c == '\\':
		case c == '\n' || c == '\r':
			s.lines = true
			continue
		default:
			s.controls = s.controls || c < ' '
			s.free = s.free || c == '"' && mark != '"'
			continue
		}
		at++
		next := byte(0)
		if at < len(text) {
			next = text[at]
		}
		switch i := strings.IndexByte(tooMuch, next); {
		case next == 'x' || next == 'U' || next >= utf8.RuneSelf || next == '$' && mark == '`':
			s.foreign = true
		case next == '"' || next == mark:
			s.quotes = true
			s.freed = s.freed || next != mark
			q.step(text, at)
		case i >= 0:
			s.escaped[i]++
		case next == '\\':
			s.doubled = true
		case isKnown(text[at-1:]):
			s.known = true
			s.outside = s.outside || next == 'n' && q == 0 && bare == 0 && !within && at+1 < len(text)
		default:
			s.other = true
		}
	}
}

// quoting is the quote that a place of a text stands in, as shells and most languages have it; 0 outside of all.
type quoting byte

func (q *quoting) step(text string, at int) {
	switch c := quoting(text[at]); {
	case c != '"' && c != '\'' || isApostrophe(text, at):
	case *q == 0:
		*q = c
	case *q == c:
		*q = 0
	}
}

// isApostrophe recognizes the apostrophe of don't.
func isApostrophe(text string, at int) bool {
	return text[at] == '\'' && at > 0 && at+1 < len(text) && isLetter(text[at-1]) && isLetter(text[at+1])
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isKnown reports whether a text begins with an escape of JSON other than a quote or a backslash.
func isKnown(text string) bool {
	if strings.HasPrefix(text, `\u`) {
		return len(text) >= 6 && json.Valid([]byte(`"`+text[:6]+`"`))
	}
	return len(text) > 1 && strings.IndexByte("/bfnrt", text[1]) >= 0
}

// settle refuses a text in which a backslash could be meant in two ways: as JSON has it, and as it stands.
func (s *signs) settle() error {
	raw := s.bare || s.lines || s.controls
	apostrophes := false
	for i, n := range s.escaped {
		switch {
		case n == 0:
		case s.plain[i] > 0: // those are not escaped, so this backslash is one
			s.other = true
		case tooMuch[i] != '\'' || n%2 != 0 || raw: // it\'s is how a shell has it
			return errUnclear
		default:
			apostrophes = true
		}
	}
	switch {
	case s.foreign, s.free && s.freed,
		// A model that leaves one backslash unescaped does so with others.
		s.other && (s.doubled || s.known || apostrophes || s.bare && s.quotes),
		// So does a model that leaves line ends unescaped.
		s.lines && (s.known || s.doubled && !s.quotes),
		// And one that leaves other characters unescaped, unless a \n is clearly the end of a line.
		raw && !s.outside && (s.known || s.doubled && (s.bare || !s.quotes)),
		s.bare && s.quotes && (s.doubled || !s.outside):
		return errUnclear
	}
	return nil
}

// escape writes the sequence after a backslash, and returns its length in the text.
func (s *signs) escape(b *strings.Builder, rest string, mark byte) int {
	next, size := byte(0), 2
	if len(rest) > 1 {
		next = rest[1]
	}
	switch i := strings.IndexByte(tooMuch, next); {
	case next == '"' || next == '\\':
		b.WriteString(rest[:size])
	case isKnown(rest):
		if next == 'u' {
			size = 6
		}
		b.WriteString(rest[:size])
	case next == mark || i >= 0 && s.plain[i] == 0:
		b.WriteByte(next)
	default:
		b.WriteString(`\\`)
		size = 1
	}
	return size
}
