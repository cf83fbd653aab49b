package rawtext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// GLM writes, with (4.5, 4.6) or without (4.7, 5) newlines between the tags:
//
//	<tool_call>name
//	<arg_key>key</arg_key>
//	<arg_value>value</arg_value>
//	</tool_call>
const (
	keyOpen   = "<arg_key>"
	keyClose  = "</arg_key>"
	valueOpen = "<arg_value>"
)

var glmValues = valueTags{
	closer:   "</arg_value>",
	follow:   []string{keyOpen, callClose, callOpen},
	nextKey:  regexp.MustCompile(`<arg_key>([^<]{1,200})</arg_key>\s*<arg_value>`),
	nextCall: regexp.MustCompile(`</tool_call>\s*<tool_call>\s*[^\s<>]{1,128}\s*<arg_key>`),
	end:      regexp.MustCompile(`</tool_call>\s*$`),
}

// glm reads one call. In a text that is no call, <tool_call> has no name and tag behind it.
func (w *walker) glm(at int, opener string) (end int, called bool) {
	start := space(w.text, at+len(opener))
	head := w.text[start:min(len(w.text), start+200)]
	length := strings.IndexAny(head, "\n<")
	if length < 0 {
		length = len(head)
		if tagName(head) && length < 200 {
			w.note(truncated, "")
		}
		return start, false
	}
	name := strings.TrimSuffix(strings.TrimSpace(head[:length]), `\n`) // some write the newline as an escape
	g := glmCall{keyed{walker: w, tags: glmValues, name: name, encode: glmValue}}
	if !tagName(g.name) {
		if strings.Contains(head, keyOpen) {
			w.note(broken, "")
		}
		return start, false
	}
	g.begin(start + length)
	st := g.arguments()
	if st == isBroken {
		g.at = earliest(w.text, g.at, callOpen, callClose)
	}
	if !g.finish(st) {
		return start, false
	}
	end, _ = closed(w.text, g.at, callClose)
	return end, true
}

type glmCall struct{ keyed }

// arguments reads up to the end of the call.
func (g *glmCall) arguments() state {
	for {
		at := space(g.text, g.at)
		rest := g.text[at:]
		switch {
		case strings.HasPrefix(rest, callClose):
			g.at = at
			return isWhole
		case strings.HasPrefix(rest, callOpen) && len(g.pairs.keys) > 0:
			g.problem = unclosed
			return isWhole
		case strings.HasPrefix(rest, keyOpen):
			if st := g.pair(at); st != isWhole {
				return st
			}
		case partOf(rest, callClose, callOpen, keyOpen):
			return g.atEnd()
		default:
			return isBroken
		}
	}
}

// glmValue encodes a value of GLM, which writes lists and objects as they would stand in a string now and then, and a
// text in quotes, as a list would hold it.
func glmValue(t *tool, name, value string) string {
	text, types := strings.TrimSpace(value), t.types(name)
	var inner string
	switch {
	case slices.Equal(types, []string{"string"}) && !strings.HasPrefix(text, `"`):
	case strings.HasPrefix(text, `[`) || strings.HasPrefix(text, `{`):
		if !json.Valid([]byte(text)) && json.Unmarshal([]byte(`"`+text+`"`), &inner) == nil && json.Valid([]byte(inner)) {
			value = inner
		}
	case len(types) > 0 && strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &inner) == nil:
		value = inner
	}
	return t.encode(name, value)
}

// pair reads a key and its value.
func (g *glmCall) pair(at int) state {
	at += len(keyOpen)
	head := g.text[at:min(len(g.text), at+300)]
	key, _, ok := strings.Cut(head, keyClose)
	if !ok {
		if len(head) < 300 {
			return g.cut()
		}
		return isBroken
	}
	at = space(g.text, at+len(key)+len(keyClose))
	if strings.HasPrefix(g.text[at:], `\n`) {
		at = space(g.text, at+len(`\n`))
	}
	if rest := g.text[at:]; !strings.HasPrefix(rest, valueOpen) {
		if partOf(rest, valueOpen) {
			return g.cut()
		}
		return isBroken
	}
	return g.value(strings.TrimSpace(key), at+len(valueOpen))
}
