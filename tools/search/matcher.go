package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
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
	literals []literal // every line that matches holds one of these; none is known when empty
	plain    bool      // a line that holds the literal matches
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
	p.plain = tree.Op == syntax.OpLiteral && shortest(p.literals) == len(string(tree.Rune)) &&
		!slices.Contains(tree.Rune, '\r') // which may be part of a line's end
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

// match tells whether a single line, with its end, matches.
func (m *matcher) match(line []byte) bool {
	switch {
	case m.plain:
		return m.literals[0].index(line) >= 0
	case m.automaton != nil:
		start, _ := m.automaton.find(line)
		return start >= 0
	}
	return m.line.Match(trimEnd(line))
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
		for i := range m.literals {
			if m.at[i] < at {
				m.at[i] = len(text)
				if found := m.literals[i].index(text[at:]); found >= 0 {
					m.at[i] = at + found
				}
			}
			nearest = min(nearest, m.at[i])
		}
		if nearest == len(text) {
			break
		}
		end := lineEnd(text, nearest)
		if m.plain || m.match(text[lineStart(text, nearest):end]) {
			n++
		}
		at = end
	}
	return n
}
