package search

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// Check says what is wrong with a pattern.
func Check(pattern string) error {
	_, err := newPattern(pattern)
	return err
}

// pattern is what all goroutines share.
type pattern struct {
	tree     *syntax.Regexp
	line     *regexp.Regexp
	literals [][]byte // every line that matches holds one of these; none is known when empty
	plain    bool     // a line that holds the literal matches
}

func newPattern(text string) (*pattern, error) {
	line, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("parse %q: %w", text, err)
	}
	if hasNewline(tree) {
		return nil, errors.New(`it holds a line end (\n), and matching is line by line`)
	}
	p := &pattern{tree: tree, line: line, literals: required(tree.Simplify())}
	p.plain = tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 &&
		!bytes.ContainsRune(p.literals[0], '\r') // which may be part of a line's end
	return p, nil
}

func hasNewline(tree *syntax.Regexp) bool {
	if tree.Op == syntax.OpLiteral {
		return strings.ContainsRune(string(tree.Rune), '\n')
	}
	for _, sub := range tree.Sub {
		if hasNewline(sub) {
			return true
		}
	}
	return false
}

// maxLiterals is how many alternatives are looked for one by one.
const maxLiterals = 4

// required returns texts of which every match holds at least one; nil when none are known.
func required(tree *syntax.Regexp) [][]byte {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return [][]byte{[]byte(string(tree.Rune))}
		}
		return eitherCase(tree.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best [][]byte
		for _, sub := range tree.Sub {
			if found := required(sub); shortest(found) > shortest(best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all [][]byte
		for _, sub := range tree.Sub {
			found := required(sub)
			if found == nil || len(all)+len(found) > maxLiterals {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

// rare are the letters in the order in which they are worth looking for. K and s are not among them, as characters beyond
// ASCII are their equals.
const rare = "qjxzvwybgpfmuhdclornitae"

// eitherCase spells the two neighbours of a text that are rarest in both cases.
func eitherCase(text []rune) [][]byte {
	at, best := -1, 2*len(rare)
	for i := range len(text) - 1 {
		a, b := strings.IndexRune(rare, unicode.ToLower(text[i])), strings.IndexRune(rare, unicode.ToLower(text[i+1]))
		if a >= 0 && b >= 0 && a+b < best {
			at, best = i, a+b
		}
	}
	if at < 0 {
		return nil
	}
	var all [][]byte
	for _, a := range []rune{unicode.ToLower(text[at]), unicode.ToUpper(text[at])} {
		for _, b := range []rune{unicode.ToLower(text[at+1]), unicode.ToUpper(text[at+1])} {
			all = append(all, []byte(string([]rune{a, b})))
		}
	}
	return all
}

func shortest(texts [][]byte) int {
	least := 0
	for _, text := range texts {
		if least == 0 || len(text) < least {
			least = len(text)
		}
	}
	return least
}

// matcher is a pattern as one goroutine uses it.
type matcher struct {
	*pattern
	automaton *automaton
	at        [maxLiterals]int // of the next literals, while find looks through a text
}

func (p *pattern) matcher() *matcher {
	m := &matcher{pattern: p}
	if !p.plain {
		m.automaton = newAutomaton(p.tree, p.line)
	}
	return m
}

// match tells whether a single line without its end matches.
func (m *matcher) match(line []byte) bool {
	switch {
	case m.plain:
		return bytes.Contains(line, m.literals[0])
	case m.automaton != nil:
		start, _ := m.automaton.find(line)
		return start >= 0 || len(line) == 0 && m.line.Match(line)
	}
	return m.line.Match(line)
}

// count is the number of lines that match in a text of whole lines; it stops at most.
func (m *matcher) count(text []byte, most int) int {
	if len(m.literals) > 0 {
		return m.countLiterals(text, most)
	}
	n := 0
	for n < most && len(text) > 0 {
		_, end := m.find(text)
		if end < 0 {
			break
		}
		n++
		text = text[end:]
	}
	return n
}

func (m *matcher) find(text []byte) (start, end int) {
	if m.automaton != nil {
		return m.automaton.find(text)
	}
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		if m.line.Match(trimEnd(text[at:end])) {
			return at, end
		}
		at = end
	}
	return -1, -1
}

// countLiterals looks at the lines alone that hold a literal.
func (m *matcher) countLiterals(text []byte, most int) int {
	for i := range m.literals {
		m.at[i] = -1
	}
	n := 0
	for at := 0; n < most && at < len(text); {
		nearest := len(text)
		for i, literal := range m.literals {
			if m.at[i] < at {
				m.at[i] = len(text)
				if found := bytes.Index(text[at:], literal); found >= 0 {
					m.at[i] = at + found
				}
			}
			nearest = min(nearest, m.at[i])
		}
		if nearest == len(text) {
			break
		}
		end := lineEnd(text, nearest)
		if m.plain || m.match(trimEnd(text[bytes.LastIndexByte(text[:nearest], '\n')+1:end])) {
			n++
		}
		at = end
	}
	return n
}
