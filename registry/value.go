package registry

import (
	"encoding/json"
	"strconv"
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

// value is a JSON value that keeps what encoding/json would lose: the spelling of numbers and strings, and the order
// of keys. So arguments that nothing had to mend are stored as the model wrote them, and big integers stay exact.
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

// parseValue reads a text that json.Valid accepted; that is what keeps it short.
func parseValue(text string) value {
	r := reader{text: text}
	return r.value()
}

type reader struct {
	text string
	pos  int
}

func (r *reader) space() byte {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *reader) value() value {
	switch r.space() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return value{kind: kindString, text: r.string()}
	}
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte(" \t\r\n,]}", r.text[r.pos]) < 0 {
		r.pos++
	}
	v := value{text: r.text[start:r.pos]}
	switch v.text[0] {
	case 'n':
		v.kind = kindNull
	case 't', 'f':
		v.kind = kindBool
	default:
		v.kind = kindNumber
	}
	return v
}

func (r *reader) string() string {
	text, start := r.text, r.pos
	end := start + 1
	for ; text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	r.pos = end + 1
	return text[start:r.pos]
}

func (r *reader) array() value {
	v := value{kind: kindArray}
	r.pos++
	for r.space() != ']' {
		v.items = append(v.items, r.value())
		if r.space() == ',' {
			r.pos++
		}
	}
	r.pos++
	return v
}

// object keeps the last of a key that comes twice, at the place of the first, as every common parser does.
func (r *reader) object() value {
	v := value{kind: kindObject}
	var seen map[string]int // from 16 keys on, where a linear search would make hostile arguments quadratic
	r.pos++
	for r.space() != '}' {
		name := r.string()
		m := member{key: unquote(name), name: name}
		r.space()
		r.pos++ // the colon
		m.value = r.value()
		at, twice := v.find(m.key, seen)
		if twice {
			v.members[at] = m
		} else {
			if v.members == nil {
				v.members = make([]member, 0, 4)
			}
			v.members = append(v.members, m)
			seen = remember(seen, v.members)
		}
		if r.space() == ',' {
			r.pos++
		}
	}
	r.pos++
	return v
}

func remember(seen map[string]int, members []member) map[string]int {
	if n := len(members); seen != nil {
		seen[members[n-1].key] = n - 1
	} else if n == 16 {
		seen = make(map[string]int, 64)
		for i, m := range members {
			seen[m.key] = i
		}
	}
	return seen
}

func (v *value) find(key string, seen map[string]int) (int, bool) {
	if seen != nil {
		i, ok := seen[key]
		return i, ok
	}
	for i := range v.members {
		if v.members[i].key == key {
			return i, true
		}
	}
	return 0, false
}

func (v *value) member(key string) *value {
	if i, ok := v.find(key, nil); ok {
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

// canonical makes equal values equal texts, for comparison with an enum.
func (v *value) canonical() string {
	switch v.kind {
	case kindString:
		return quote(unquote(v.text))
	case kindNumber:
		if n, ok := integer(v.text); ok {
			return n
		}
		f, _ := strconv.ParseFloat(v.text, 64)
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return string(v.append(nil))
}

// unquote decodes a JSON string. Most have no escape and cost nothing.
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

// quote encodes a string as JSON that is read by people and models: without escapes for HTML.
func quote(s string) string {
	text, err := encode(s)
	if err != nil {
		return `""`
	}
	return text
}
