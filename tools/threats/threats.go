// Package threats finds text that tries to take over the agent that reads it.
package threats

import (
	"fmt"
	"regexp"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Scope says how much of what could be meant well is refused. Each scope holds those before it.
type Scope int

// The scopes.
const (
	All     Scope = iota // any text that an agent reads
	Context              // text that stands beside its instructions, such as a project's notes
	Strict               // text that the agent writes down for later sessions
)

// Finding is something that a text should not hold.
type Finding struct {
	ID   string `json:"id"`   // of the pattern, or invisible_character
	Text string `json:"text"` // what it matched, shortened
}

// maxText is how much of a text is looked at; what a memory or a skill holds is far shorter.
const maxText = 1 << 20

// Scan lists what it finds in a text, each pattern once.
func Scan(text string, scope Scope) []Finding {
	text = text[:min(len(text), maxText)]
	var found []Finding
	if r, ok := invisible(text); ok {
		found = append(found, Finding{ID: "invisible_character", Text: fmt.Sprintf("%U", r)})
	}
	// Letters that only look different are one letter for a model.
	text = norm.NFKC.String(text)
	for _, p := range compiled() {
		if p.scope > scope {
			continue
		}
		if match := p.expression.FindString(text); match != "" {
			found = append(found, Finding{ID: p.id, Text: shorten(match)})
		}
	}
	return found
}

func shorten(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

type compiledPattern struct {
	id         string
	scope      Scope
	expression *regexp.Regexp
}

// compiled is made at the first scan: a helper that never scans pays nothing.
var compiled = sync.OnceValue(func() []compiledPattern {
	all := make([]compiledPattern, len(patterns))
	for i, p := range patterns {
		all[i] = compiledPattern{p.id, p.scope, regexp.MustCompile("(?is)" + p.expression)}
	}
	return all
})

// invisible finds the first character that no reader sees or that turns the direction of writing around. Joiners
// between characters beyond ASCII stay: emoji and many scripts are written with them.
func invisible(text string) (rune, bool) {
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case r == '\u200c' || r == '\u200d':
			if i == 0 || i == len(runes)-1 || !joinable(runes[i-1]) || !joinable(runes[i+1]) {
				return r, true
			}
		case r == '\u200b', r == '\u2060', r >= '\u2062' && r <= '\u2064', r == '\ufeff',
			r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return r, true
		}
	}
	return 0, false
}

func joinable(r rune) bool {
	return r > unicode.MaxASCII && r != '\u200c' && r != '\u200d' && !unicode.IsSpace(r)
}
