// Package threats finds text that tries to take over the agent that reads it.
package threats

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"trajgen/tools/internal/chars"
)

// Finding is a match in a text.
type Finding struct {
	ID   string `json:"id"`   // of the pattern, or invisible_character
	Text string `json:"text"` // what it matched, shortened
}

// maxText bounds the scanned text, in bytes; memory entries and skills are far shorter.
const maxText = 1 << 20

// Scan returns the findings in a text that an agent writes down for later sessions, each pattern once.
func Scan(text string) []Finding {
	text = text[:min(len(text), maxText)]
	var found []Finding
	if r, ok := Invisible(text); ok {
		found = append(found, Finding{ID: "invisible_character", Text: fmt.Sprintf("%U", r)})
	}
	for _, match := range builtin.Find(text) {
		found = append(found, Finding{ID: match.ID, Text: match.Text})
	}
	return found
}

// Pattern is an expression of RE2, which letters of any case match, in texts in their compatibility form.
type Pattern struct{ ID, Expression string }

// Match is where a text in its compatibility form first matches a pattern.
type Match struct {
	ID, Text string // the text is shortened
	Start    int    // within the compatibility form
}

// Patterns are looked for together. They are compiled at the first search: a helper that never scans pays nothing.
type Patterns struct{ compiled func() []compiledPattern }

// Compile prepares patterns. An expression that is none panics at the first search.
func Compile(patterns []Pattern) Patterns {
	return Patterns{sync.OnceValue(func() []compiledPattern {
		all := make([]compiledPattern, len(patterns))
		for i, p := range patterns {
			expression := "(?is)" + p.Expression
			parsed, err := syntax.Parse(expression, syntax.Perl)
			if err != nil {
				panic(err)
			}
			all[i] = compiledPattern{p.ID, regexp.MustCompile(expression), needed(parsed)}
		}
		return all
	})}
}

// Find returns the first match of each pattern.
func (p Patterns) Find(text string) []Match {
	// Letters that only look different are the same for a model.
	text = norm.NFKC.String(text[:min(len(text), maxText)])
	lower := strings.ToLower(text)
	has := func(needed string) bool { return strings.Contains(lower, needed) }
	var found []Match
	for _, p := range p.compiled() {
		if p.needed != nil && !slices.ContainsFunc(p.needed, has) {
			continue
		}
		if at := p.expression.FindStringIndex(text); at != nil && at[0] < at[1] {
			found = append(found, Match{ID: p.id, Text: chars.First(text[at[0]:at[1]], maxMatch, "…"), Start: at[0]})
		}
	}
	return found
}

// maxMatch bounds the reported part of a match, in characters.
const maxMatch = 80

type compiledPattern struct {
	id         string
	expression *regexp.Regexp
	needed     []string
}

var builtin = Compile(patterns)

// All are the patterns that Scan looks for.
func All() []Pattern { return slices.Clone(patterns) }
