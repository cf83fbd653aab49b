package search

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Check refuses an invalid pattern.
func Check(pattern string) error {
	_, err := newPattern(pattern)
	return err
}

// pattern finds the lines that match. Package regexp decides; it only gets lines with the required literals, which
// are found many times faster. Goroutines share a pattern.
type pattern struct {
	line     *regexp.Regexp
	literals []literal // every match contains one of them; empty when unknown
}

func newPattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if hasNewline(tree) {
		return nil, errors.New(`it holds a line end (\n), and matching is line by line`)
	}
	line, err := regexp.Compile(text)
	return &pattern{line: line, literals: required(tree.Simplify())}, err
}

func hasNewline(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpLiteral && slices.Contains(tree.Rune, '\n') || slices.ContainsFunc(tree.Sub, hasNewline)
}

// match reports whether a single line, with its end, matches.
func (p *pattern) match(line []byte) bool { return p.line.Match(trimEnd(line)) }

// count returns the number of matching lines in a text of whole lines; it stops at most.
func (p *pattern) count(text []byte, most int) int {
	n, next := 0, p.candidates(text)
	for at := next(0); n < most && at < len(text); {
		end := lineEnd(text, at)
		if p.match(text[bytes.LastIndexByte(text[:at], '\n')+1 : end]) {
			n++
		}
		at = next(end)
	}
	return n
}

// candidates returns a function that finds, from an offset on, a place in the next line that may match, or the text's length.
func (p *pattern) candidates(text []byte) func(from int) int {
	if len(p.literals) == 0 {
		return func(from int) int { return from }
	}
	folded := text
	if slices.ContainsFunc(p.literals, func(l literal) bool { return l.fold }) {
		folded = lower(text)
	}
	places := make([]int, len(p.literals)) // the next place of each literal
	for i := range places {
		places[i] = -1
	}
	return func(from int) int {
		for i, l := range p.literals {
			if places[i] >= from {
				continue
			}
			in := text
			if l.fold {
				in = folded
			}
			places[i] = len(text)
			if found := bytes.Index(in[from:], l.text); found >= 0 {
				places[i] = from + found
			}
		}
		return slices.Min(places)
	}
}

// lineEnd returns where the line after the one that contains an offset begins.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// trimEnd removes the line end.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
