package registry

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is the type of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// value is a JSON value that keeps what encoding/json would lose: the spelling of numbers and strings, and the order of keys. So
// unchanged arguments are stored as the model wrote them, and big integers stay exact.
type value struct {
	kind    kind
	text    string // a scalar as JSON
	items   []value
	members []member
}

type member struct {
	key   string // decoded
	name  string // as JSON
	value value
}

// parseValue reads a text that json.Valid accepted.
func parseValue(text string) value {
	r := reader{text: text, tokens: json.NewDecoder(strings.NewReader(text))}
	r.tokens.UseNumber()
	return r.value()
}

// reader reads values token by token, each with its original text.
type reader struct {
	text   string
	tokens *json.Decoder
}

func (r *reader) next() (token json.Token, spelled string) {
	start := r.tokens.InputOffset()
	token, _ = r.tokens.Token()
	return token, strings.TrimLeft(r.text[start:r.tokens.InputOffset()], " \t\r\n,:")
}

func (r *reader) value() value {
	token, spelled := r.next()
	switch token := token.(type) {
	case bool:
		return value{kind: kindBool, text: spelled}
	case json.Number:
		return value{kind: kindNumber, text: spelled}
	case string:
		return value{kind: kindString, text: spelled}
	case json.Delim:
		if token == '[' {
			return r.array()
		}
		return r.object()
	}
	return value{kind: kindNull, text: "null"}
}

func (r *reader) array() value {
	v := value{kind: kindArray}
	for r.tokens.More() {
		v.items = append(v.items, r.value())
	}
	r.next()
	return v
}

// object keeps the last of a key that comes twice, at the place of the first, as every common parser does.
func (r *reader) object() value {
	v, seen := value{kind: kindObject}, map[string]int{}
	for r.tokens.More() {
		token, name := r.next()
		key, _ := token.(string)
		m := member{key: key, name: name, value: r.value()}
		if at, twice := seen[key]; twice {
			v.members[at] = m
			continue
		}
		seen[key] = len(v.members)
		v.members = append(v.members, m)
	}
	r.next()
	return v
}

func (v *value) member(key string) *value {
	if i := slices.IndexFunc(v.members, func(m member) bool { return m.key == key }); i >= 0 {
		return &v.members[i].value
	}
	return nil
}

// clone is deep, as coercion works in place.
func (v value) clone() value {
	items := make([]value, len(v.items))
	for i := range v.items {
		items[i] = v.items[i].clone()
	}
	members := make([]member, len(v.members))
	for i, m := range v.members {
		m.value = m.value.clone()
		members[i] = m
	}
	v.items, v.members = items, members
	return v
}

// size counts the values in a value.
func (v *value) size() int {
	n := 1
	for i := range v.items {
		n += v.items[i].size()
	}
	for i := range v.members {
		n += v.members[i].value.size()
	}
	return n
}

// deeper tells whether lists and objects are nested over so many levels.
func (v *value) deeper(levels int) bool {
	if v.kind >= kindArray && levels == 0 {
		return true
	}
	for i := range v.items {
		if v.items[i].deeper(levels - 1) {
			return true
		}
	}
	for i := range v.members {
		if v.members[i].value.deeper(levels - 1) {
			return true
		}
	}
	return false
}

// append writes the value as compact JSON.
func (v *value) append(dst []byte) []byte {
	switch v.kind {
	case kindArray:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].append(dst)
		}
		return append(dst, ']')
	case kindObject:
		dst = append(dst, '{')
		for i := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, v.members[i].name...), ':')
			dst = v.members[i].value.append(dst)
		}
		return append(dst, '}')
	}
	return append(dst, v.text...)
}

// unquote decodes a JSON string. It does not copy one without escapes.
func unquote(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return text[1 : len(text)-1]
	}
	return s
}

// quote encodes a string as JSON without escapes for HTML, as people and models read it.
func quote(s string) string { return jsonOf(s) }
