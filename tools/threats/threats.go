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
	if r, ok := invisible(text); ok {
		found = append(found, Finding{ID: "invisible_character", Text: fmt.Sprintf("%U", r)})
	}
	// Letters that only look different are the same for a model.
	text = norm.NFKC.String(text)
	lower := strings.ToLower(text)
	has := func(needed string) bool { return strings.Contains(lower, needed) }
	for _, p := range compiled() {
		if p.needed != nil && !slices.ContainsFunc(p.needed, has) {
			continue
		}
		if match := p.expression.FindString(text); match != "" {
			found = append(found, Finding{ID: p.id, Text: chars.First(match, maxMatch, "…")})
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

// The patterns are compiled at the first scan: a helper that never scans pays nothing.
var compiled = sync.OnceValue(func() []compiledPattern {
	all := make([]compiledPattern, len(patterns))
	for i, p := range patterns {
		expression := "(?is)" + p.expression
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			panic(err)
		}
		all[i] = compiledPattern{p.id, regexp.MustCompile(expression), needed(parsed)}
	}
	return all
})
