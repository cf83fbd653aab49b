package search

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/chars"
)

// part is the matches of a file on the page: those numbered from to before to, counted from 0.
type part struct {
	entry
	from, to int
}

// maxShown bounds the text of the matches on a page, in bytes: a model reads it.
const maxShown = 4 << 20

// shownLines are matches with their context.
type shownLines struct {
	all  []Line
	size int  // bytes of text
	full bool // some matches did not fit
}

func (s *shownLines) line(text []byte) string {
	line := shownLine(text)
	s.size += len(line)
	return line
}

// add adds the matching lines of a file with their context. The file may have changed since its matches were counted.
func (s *shownLines) add(p part, wanted *pattern, context int) error {
	number, n := 0, 0
	var before []string // the last lines, at most context
	open := len(s.all)  // the first line whose context may continue
	var buffer []byte
	return chunks(p.name, &buffer, func(text []byte) bool {
		for len(text) > 0 {
			end := lineEnd(text, 0)
			whole, line := text[:end], trimEnd(text[:end])
			text = text[end:]
			number++
			for ; open < len(s.all) && len(s.all[open].After) >= context; open++ {
			}
			for i := open; i < len(s.all); i++ {
				s.all[i].After = append(s.all[i].After, s.line(line))
			}
			if n < p.to && wanted.match(whole) {
				if n >= p.from {
					if s.full = s.size >= maxShown; s.full {
						return false
					}
					s.all = append(s.all, Line{Path: p.shown, Line: number, Content: s.excerpt(line, wanted), Before: append([]string(nil), before...)})
					for _, each := range before {
						s.size += len(each)
					}
				}
				n++
			}
			if n == p.to && (context == 0 || open == len(s.all)) {
				return false
			}
			if context > 0 {
				if len(before) == context {
					before = append(before[:0], before[1:]...)
				}
				before = append(before, shownLine(line))
			}
		}
		return true
	})
}

// excerpt returns the part of a matching line that is shown, with the match in it.
func (s *shownLines) excerpt(line []byte, wanted *pattern) string {
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	at := wanted.line.FindStringIndex(text)
	if at == nil || utf8.RuneCountInString(text[:at[1]]) <= maxShownLine {
		return s.line(line)
	}
	before := chars.Last(text[:at[0]], leading)
	shown := chars.First(before+text[at[0]:], maxShownLine, "...")
	if len(before) < at[0] {
		shown = "..." + shown
	}
	s.size += len(shown)
	return shown
}

// How many characters of a line are shown, and how many before a match that is further back.
const (
	maxShownLine = 500
	leading      = 100
)

func shownLine(line []byte) string {
	return chars.First(strings.ToValidUTF8(string(line), "\uFFFD"), maxShownLine, "...")
}

// count is how many lines of a file match.
type count struct {
	path string
	n    int
}

// object returns {"path": n, ...}, in the order in which the files were found.
func object(counts []count) json.RawMessage {
	members := make([]string, len(counts))
	for i, each := range counts {
		name, _ := json.Marshal(each.path) // a string is always valid
		members[i] = fmt.Sprintf("%s:%d", name, each.n)
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}
