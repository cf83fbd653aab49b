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
	isBroken       // something in it is not JSON
)

// maxDepth bounds the nesting of values.
const maxDepth = 1000

// jsonValue finds the end of the JSON value at text[at:], or where it breaks. It is stricter than counting brackets,
// because a tag must not be taken for a part of a value, and laxer than JSON: raw control characters, single quotes,
// True and trailing commas say where a value ends as well as anything. Whoever decodes the value judges those.
func jsonValue(text string, at int) (end int, st state) { return nested(text, at, 0) }

func nested(text string, at, depth int) (end int, st state) {
	if at = space(text, at); at == len(text) {
		return at, isCut
	}
	switch text[at] {
	case '"', '\'':
		end, ok := quoted(text, at)
		if !ok {
			return end, isCut
		}
		return end, isWhole
	case '{', '[':
		if depth == maxDepth {
			return at, isBroken
		}
		return collection(text, at, depth+1, func(string, int, int, state) {})
	}
	end = literals(text, at)
	switch end {
	case at:
		return at, isBroken
	case len(text):
		return end, isCut // more digits may follow
	}
	return end, isWhole
}

// collection reads the object or list at text[at:]. Of a member that is not whole, each gets what there is.
func collection(text string, at, depth int, each func(key string, start, end int, st state)) (end int, st state) {
	object, closer := text[at] == '{', text[at]+2
	at++
	// is skips white space, and says whether it is one of these that follows.
	is := func(wanted string) bool {
		if at = space(text, at); at == len(text) {
			st = isCut
			return false
		}
		if strings.IndexByte(wanted, text[at]) >= 0 {
			return true
		}
		at, st = literals(text, at), isBroken
		return false
	}
	for {
		if at = space(text, at); at < len(text) && text[at] == closer {
			return at + 1, isWhole
		}
		key := ""
		if object {
			if !is(`"'`) {
				return at, st
			}
			end, ok := quoted(text, at)
			if !ok {
				return end, isCut
			}
			key, at = text[at:end], end
			if !is(":") {
				return at, st
			}
			at++
		}
		if at = space(text, at); at == len(text) {
			return at, isCut
		}
		start := at
		at, st = nested(text, at, depth)
		each(key, start, at, st)
		if st != isWhole || !is(","+string(closer)) {
			return at, st
		}
		if text[at] == ',' {
			at++
		}
	}
}

// literals is where the literal at text[at:] ends.
func literals(text string, at int) int {
	for at < len(text) && literal(text[at]) {
		at++
	}
	return at
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

// isObject says whether a text is meant to be an object.
func isObject(text string) bool { return strings.HasPrefix(text, "{") }
