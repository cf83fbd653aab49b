package datasets

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// object puts members together: keys sorted at every depth, no white space, numbers untouched; without what is null below
// the members, when nulls is false.
func object(list []member, nulls bool) (json.RawMessage, error) { return objectIn(nil, list, nulls) }

// objectIn is object in the memory of an earlier one, which is gone then.
func objectIn(earlier json.RawMessage, list []member, nulls bool) (json.RawMessage, error) {
	size := 2
	for _, m := range list {
		size += len(m.name) + len(m.value) + 4
	}
	if text, ok := appendObject(slices.Grow(earlier[:0], size), slices.Clone(list), true, nulls, maxDepth); ok {
		return text, nil
	}
	values := make(map[string]any, len(list))
	for _, m := range list {
		value, err := decodeAny(m.value)
		if err != nil {
			return nil, err
		}
		if !nulls {
			value = withoutNulls(value)
		}
		values[m.name] = value
	}
	return encode(values)
}

// appendObject writes what encode does of the members, which it sorts. It leaves what it does not take to encoding/json, as
// the scanner does.
func appendObject(to []byte, list []member, top, nulls bool, depth int) ([]byte, bool) {
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	to = append(to, '{')
	first := true
	for i, m := range list {
		if i > 0 && m.name == list[i-1].name {
			return to, false
		}
		if !top && !nulls && m.value[0] == 'n' {
			continue
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		to = append(appendText(to, m.name), ':')
		var ok bool
		if to, ok = appendValue(to, m.value, nulls, depth-1); !ok {
			return to, false
		}
	}
	return append(to, '}'), true
}

// appendValue writes one value likewise.
func appendValue(to []byte, value []byte, nulls bool, depth int) (_ []byte, ok bool) {
	if len(value) == 0 || depth == 0 {
		return to, false
	}
	switch c := value[0]; c {
	case '{':
		var inner []member
		end := scanItems(value, 0, c, func(name, value []byte) bool {
			m := member{value: value}
			m.name, ok = unquote(name)
			inner = append(inner, m)
			return ok
		})
		if end != len(value) {
			return to, false
		}
		return appendObject(to, inner, false, nulls, depth)
	case '[':
		to = append(to, '[')
		first := true
		end := scanItems(value, 0, c, func(_, value []byte) bool {
			if !first {
				to = append(to, ',')
			}
			first = false
			to, ok = appendValue(to, value, nulls, depth-1)
			return ok
		})
		return append(to, ']'), end == len(value)
	case '"':
		if asWritten(value) {
			return append(to, value...), scanString(value, 0) == len(value)
		}
		text, ok := unquote(value)
		return appendText(to, text), ok
	}
	return append(to, value...), scanValue(value, 0, 1) == len(value)
}

// asWritten says whether a string is plainly written as appendText would write it: with no other escapes than short ones.
func asWritten(quoted []byte) bool {
	for rest := quoted; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			break
		}
		if at+1 == len(rest) || shortEscape(escaped(rest[at+1])) != rest[at+1] {
			return false
		}
		rest = rest[at+2:]
	}
	return utf8.Valid(quoted) && !bytes.Contains(quoted, lineSeparators)
}

// lineSeparators is what U+2028 and U+2029 begin with, which encoding/json escapes.
var lineSeparators = []byte("\xe2\x80")

// appendText writes a string as encode does.
func appendText(to []byte, text string) []byte {
	if !utf8.ValidString(text) || strings.Contains(text, string(lineSeparators)) {
		encoded, err := encodeSlowly(text)
		if err == nil { // of a string there is none
			return append(to, encoded...)
		}
	}
	to = append(slices.Grow(to, len(text)+2), '"')
	written := 0
	for i := 0; i < len(text); i++ {
		if i+8 <= len(text) && plainWord(text[i:i+8]) {
			i += 7
			continue
		}
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[written:i]...)
		written = i + 1
		if letter := shortEscape(c); letter != 0 {
			to = append(to, '\\', letter)
			continue
		}
		const hex = "0123456789abcdef"
		to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(append(to, text[written:]...), '"')
}

// plainWord says whether eight bytes are written as they are.
func plainWord(text string) bool {
	_ = text[7]
	word := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
	return specials(word) == 0
}

// shortEscape is the letter that stands for a byte behind a backslash; 0 for none.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}
