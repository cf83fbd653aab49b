package datasets

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A dataset is read before a run begins, and whoever started it waits: what follows takes JSON apart several times as fast
// as encoding/json. It never judges. Whatever is not plainly right, or rare, is left to encoding/json, whose words the
// errors are in; what is taken apart here, that library would have taken apart alike.

// maxDepth bounds how deep values are followed here.
const maxDepth = 100

// splitObject takes apart what is one object with valid UTF-8 alone. Of its entries none is there twice. It lists them in the
// memory of an earlier list, which is gone then; nil is none.
func splitObject(earlier []member, text []byte) (list []member, ok bool) {
	if list = earlier[:0]; list == nil {
		list = make([]member, 0, 8)
	}
	var seen map[string]bool // once there are many
	nulls := false
	end := scanItems(text, 0, '{', func(name, value []byte) bool {
		m := member{value: value}
		if m.name, ok = nameLike(list, name); !ok {
			return false
		}
		const many = 16
		switch {
		case seen == nil && len(list) < many:
			if slices.ContainsFunc(list, func(other member) bool { return other.name == m.name }) {
				return false
			}
		default:
			if seen == nil {
				seen = make(map[string]bool, 4*many)
				for _, other := range list {
					seen[other.name] = true
				}
			}
			if seen[m.name] {
				return false
			}
			seen[m.name] = true
		}
		nulls = nulls || value[0] == 'n'
		list = append(list, m)
		return true
	})
	if end != len(text) {
		return nil, false
	}
	if nulls {
		list = slices.DeleteFunc(list, func(m member) bool { return m.value[0] == 'n' })
	}
	return list, true
}

// nameLike reads the name of the next entry. Most rows have those of the one before, whose entries are in the same memory.
func nameLike(list []member, quoted []byte) (string, bool) {
	if n := len(list); n < cap(list) {
		before := list[:n+1][n].name
		if string(quoted[1:len(quoted)-1]) == before && strings.IndexByte(before, '\\') < 0 {
			return before, true
		}
	}
	return unquote(quoted)
}

// splitList takes apart what is one list and nothing else, into the memory of an earlier one; nil is none.
func splitList(earlier []json.RawMessage, text []byte) ([]json.RawMessage, bool) {
	items := earlier[:0]
	if items == nil {
		items = []json.RawMessage{}
	}
	end := scanItems(text, 0, '[', func(_, value []byte) bool {
		items = append(items, value)
		return true
	})
	return items, end == len(text)
}

// scanItems gives each what is in the object or list that begins at an index with the bracket open; a list's have no
// names. It returns the index behind the end, or -1 for what it does not take, or when each does not.
func scanItems(text []byte, at int, open byte, each func(name, value []byte) bool) int {
	return scanInside(text, at, open, maxDepth, each)
}

func scanInside(text []byte, at int, open byte, depth int, each func(name, value []byte) bool) int {
	if depth == 0 || at >= len(text) || text[at] != open {
		return -1
	}
	closing := open + 2 // ] after [, } after {
	at = scanSpace(text, at+1)
	if at < len(text) && text[at] == closing {
		return at + 1
	}
	for {
		var name []byte
		if open == '{' {
			end := scanString(text, at)
			if end < 0 {
				return -1
			}
			name = text[at:end]
			if at = scanSpace(text, end); at >= len(text) || text[at] != ':' {
				return -1
			}
			at = scanSpace(text, at+1)
		}
		end := scanValue(text, at, depth-1)
		if end < 0 || each != nil && !each(name, text[at:end:end]) {
			return -1
		}
		if at = scanSpace(text, end); at >= len(text) {
			return -1
		}
		switch text[at] {
		case closing:
			return at + 1
		case ',':
			at = scanSpace(text, at+1)
		default:
			return -1
		}
	}
}

// scanValue returns the index behind the value that begins at one.
func scanValue(text []byte, at, depth int) int {
	if at >= len(text) {
		return -1
	}
	switch c := text[at]; c {
	case '"':
		return scanString(text, at)
	case '{', '[':
		return scanInside(text, at, c, depth, nil)
	case 't':
		return scanWord(text, at, "true")
	case 'f':
		return scanWord(text, at, "false")
	case 'n':
		return scanWord(text, at, "null")
	}
	return scanNumber(text, at)
}

func scanWord(text []byte, at int, word string) int {
	if len(text)-at < len(word) || string(text[at:at+len(word)]) != word {
		return -1
	}
	return at + len(word)
}

func scanSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

func scanNumber(text []byte, at int) int {
	digits := func() bool {
		from := at
		for at < len(text) && text[at]-'0' < 10 {
			at++
		}
		return at > from
	}
	if at < len(text) && text[at] == '-' {
		at++
	}
	if at < len(text) && text[at] == '0' {
		at++
	} else if !digits() {
		return -1
	}
	if at < len(text) && text[at] == '.' {
		at++
		if !digits() {
			return -1
		}
	}
	if at < len(text) && text[at]|0x20 == 'e' {
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		if !digits() {
			return -1
		}
	}
	return at
}

// scanString looks at eight bytes at a time for what a string does not have as it is: it ends, is escaped, or is no string.
// A string is valid UTF-8.
func scanString(text []byte, at int) int {
	if at >= len(text) || text[at] != '"' {
		return -1
	}
	begin, wide := at, uint64(0)
	for at++; at < len(text); {
		if at+8 <= len(text) {
			word := binary.LittleEndian.Uint64(text[at:])
			wide |= word
			found := specials(word)
			if found == 0 {
				at += 8
				continue
			}
			at += bits.TrailingZeros64(found) / 8
		} else {
			wide |= uint64(text[at])
		}
		switch c := text[at]; {
		case c == '"':
			if wide&highest != 0 && !utf8.Valid(text[begin:at]) {
				return -1
			}
			return at + 1
		case c == '\\':
			size := escapeSize(text[at:])
			if size < 0 {
				return -1
			}
			at += size
		case c < ' ':
			return -1
		default:
			at++
		}
	}
	return -1
}

// These are the lowest and the highest bit of every byte.
const (
	each    = 0x0101010101010101
	highest = each << 7
)

// zeroByte marks the highest bit of the first byte that is zero, and perhaps of some behind it.
func zeroByte(word uint64) uint64 { return (word - each) &^ word & highest }

// specials marks the highest bit of the first of eight bytes that a string does not have as it is, and perhaps of some behind
// it.
func specials(word uint64) uint64 {
	return zeroByte(word^each*'"') | zeroByte(word^each*'\\') | (word-each*' ')&^word&highest
}

// escapeSize is how long the escape is that a text begins with.
func escapeSize(text []byte) int {
	if len(text) > 1 && escaped(text[1]) != 0 {
		return 2
	}
	if _, ok := codeUnit(text); ok {
		return 6
	}
	return -1
}

// escaped is what a letter stands for behind a backslash; 0 for none.
func escaped(letter byte) byte { return escapes[letter] }

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// codeUnit reads \uXXXX at the beginning of a text.
func codeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// unquote reads what is JSON text, when that is a string from its first byte to its last.
func unquote(quoted []byte) (string, bool) {
	last := len(quoted) - 1
	if last < 1 || quoted[0] != '"' || quoted[last] != '"' || !utf8.Valid(quoted) {
		return "", false
	}
	inner := quoted[1:last]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var few [4 << 10]byte
	text := few[:]
	if len(inner) > len(few) {
		text = make([]byte, len(inner))
	}
	size := 0 // what is read is never shorter than what comes of it
	for at := 0; at < len(inner); {
		if at+8 <= len(inner) {
			word := binary.LittleEndian.Uint64(inner[at:])
			binary.LittleEndian.PutUint64(text[size:], word)
			found := zeroByte(word ^ each*'\\')
			if found == 0 {
				at, size = at+8, size+8
				continue
			}
			plain := bits.TrailingZeros64(found) / 8
			at, size = at+plain, size+plain
		}
		if inner[at] != '\\' {
			text[size] = inner[at]
			at, size = at+1, size+1
			continue
		}
		if at+1 == len(inner) {
			return "", false
		}
		if letter := escaped(inner[at+1]); letter != 0 {
			text[size] = letter
			at, size = at+2, size+1
			continue
		}
		unit, ok := codeUnit(inner[at:])
		if !ok {
			return "", false
		}
		at += 6
		if utf16.IsSurrogate(unit) {
			second, _ := codeUnit(inner[at:])
			if unit = utf16.DecodeRune(unit, second); unit != utf8.RuneError {
				at += 6
			}
		}
		size += utf8.EncodeRune(text[size:], unit)
	}
	return string(text[:size]), true
}
