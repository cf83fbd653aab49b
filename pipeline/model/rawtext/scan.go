package rawtext

import (
	"encoding/json"
	"strings"
)

// state is how far a piece of JSON goes.
type state int

const (
	isWhole  state = iota
	isCut          // the text ended within it
	isBroken       // something in it is no JSON
)

// maxDepth bounds the nesting of values.
const maxDepth = 1000

// jsonValue finds the end of the JSON value at text[at:], or where it breaks. It is stricter than counting brackets,
// because a tag must not be taken for a part of a value, and laxer than JSON: raw control characters, single quotes,
// True and trailing commas say where a value ends as well as anything. Whoever decodes the value judges those.
func jsonValue(text string, at int) (end int, st state) {
	const (
		value = iota
		key
		colon
		separator
	)
	var nested [maxDepth]byte
	depth, want := 0, value
	for at < len(text) {
		switch c := text[at]; c {
		case ' ', '\t', '\r', '\n':
			at++
			continue
		case '"', '\'':
			if want != value && want != key {
				return at, isBroken
			}
			var ok bool
			if at, ok = quoted(text, at); !ok {
				return at, isCut
			}
			if want == key {
				want = colon
			} else {
				want = separator
			}
		case '{', '[':
			if want != value || depth == maxDepth {
				return at, isBroken
			}
			nested[depth] = c
			depth++
			if c == '{' {
				want = key
			}
			at++
		case '}', ']':
			if depth == 0 || nested[depth-1] != c-2 || want == colon || want == value && c == '}' {
				return at, isBroken
			}
			depth--
			want = separator
			at++
		case ':':
			if want != colon {
				return at, isBroken
			}
			want = value
			at++
		case ',':
			if want != separator {
				return at, isBroken
			}
			want = value
			if nested[depth-1] == '{' {
				want = key
			}
			at++
		default:
			start := at
			for at < len(text) && literal(text[at]) {
				at++
			}
			if want != value || at == start {
				return at, isBroken
			}
			if at == len(text) {
				return at, isCut // more digits may follow
			}
			want = separator
		}
		if depth == 0 && want == separator {
			return at, isWhole
		}
	}
	return at, isCut
}

// literal is a character of a number, true, false or null, or of what Python writes for them.
func literal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// quoted finds the end of the string at text[at:].
func quoted(text string, at int) (end int, ok bool) {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1, true
		}
	}
	return len(text), false
}

// unquote is the content of a string that quoted found.
func unquote(s string) string {
	var content string
	if s[0] == '"' && json.Unmarshal([]byte(s), &content) == nil {
		return content
	}
	return s[1 : len(s)-1]
}

// members reads the object at text[at:]. Of a member that is not whole, each gets what there is.
func members(text string, at int, each func(key string, start, end int, st state)) (end int, st state) {
	at++ // the brace
	for {
		if at = space(text, at); at == len(text) {
			return at, isCut
		}
		switch text[at] {
		case '}':
			return at + 1, isWhole
		case '"', '\'':
		default:
			return at, isBroken
		}
		from := at
		var ok bool
		if at, ok = quoted(text, at); !ok {
			return at, isCut
		}
		name := unquote(text[from:at])
		if at = space(text, at); at == len(text) {
			return at, isCut
		}
		if text[at] != ':' {
			return at, isBroken
		}
		if at = space(text, at+1); at == len(text) {
			return at, isCut
		}
		start := at
		at, st = jsonValue(text, at)
		each(name, start, at, st)
		if st != isWhole {
			return at, st
		}
		if at = space(text, at); at == len(text) {
			return at, isCut
		}
		switch text[at] {
		case ',':
			at++
		case '}':
		default:
			return at, isBroken
		}
	}
}

// isObject says whether a text is meant to be an object.
func isObject(text string) bool { return strings.HasPrefix(text, "{") }
