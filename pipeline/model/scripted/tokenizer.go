package scripted

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The tokenizer has a token for every byte, whose id is its value, and one for each mark below. Encoding loses
// nothing: detokenizing gives the text back byte by byte, and the tokens of two texts that are put together are those
// of both, because a mark holds "<" only at its start.
var marks = [...]string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
	"<tool_response>", "</tool_response>",
}

const firstMark = 256

// mark tells which mark a text that begins with "<" begins with.
func mark(s string) (id int32, size int) {
	if len(s) < len("<think>") || s[1] != '|' && s[1] != 't' && s[1:3] != "/t" {
		return '<', 1
	}
	for i, m := range marks {
		if strings.HasPrefix(s, m) {
			return firstMark + int32(i), len(m)
		}
	}
	return '<', 1
}

// countTokens is the number of tokens of a text.
func countTokens(s string) int {
	n := len(s)
	for {
		at := strings.IndexByte(s, '<')
		if at < 0 {
			return n
		}
		_, size := mark(s[at:])
		n -= size - 1
		s = s[at+size:]
	}
}

// encode appends the tokens of a text.
func encode(ids []int32, s string) []int32 {
	for i := 0; i < len(s); {
		id, size := int32(s[i]), 1
		if id == '<' {
			id, size = mark(s[i:])
		}
		ids = append(ids, id)
		i += size
	}
	return ids
}

// decode is the text of a token; false when there is none with that id.
func decode(id int32) (string, bool) {
	switch {
	case id >= 0 && id < firstMark:
		return string([]byte{byte(id)}), true
	case id >= firstMark && int(id) < firstMark+len(marks):
		return marks[id-firstMark], true
	}
	return "", false
}

// start is the start of a text that has at most so many tokens and ends between two characters.
func start(s string, limit int) string {
	at := 0
	for n := 0; n < limit && at < len(s); n++ {
		size := 1
		if s[at] == '<' {
			_, size = mark(s[at:])
		}
		at += size
	}
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}

// list writes ids as JSON. encoding/json would take ten times as long, and a prompt has tens of thousands.
func list(ids []int32) json.RawMessage {
	b := append(make([]byte, 0, 4*len(ids)+2), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

// tally takes a prompt in: it counts the tokens, and keeps them when they are wanted.
type tally struct {
	keep bool
	ids  []int32
	n    int
}

func (t *tally) text(s string) {
	if t.keep {
		t.ids = encode(t.ids, s)
		t.n = len(t.ids)
		return
	}
	t.n += countTokens(s)
}

// content takes the content of a message. To count it there is no need to copy the text out of the JSON.
func (t *tally) content(raw rawJSON) {
	if !t.keep && len(raw) >= 2 && raw[0] == '"' {
		if n, ok := countInside(string(raw[1 : len(raw)-1])); ok {
			t.n += n
			return
		}
	}
	t.text(raw.text())
}

// countInside is the number of tokens of the text that is written so between the quotes of a JSON string. It is not
// known when something is written there in a way that could hide a mark or stand for another number of bytes.
func countInside(s string) (n int, ok bool) {
	if !utf8.ValidString(s) {
		return 0, false
	}
	n = countTokens(s)
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return n, true
		}
		if s[at+1] == 'u' || s[at+1] == '/' {
			return 0, false
		}
		n--
		s = s[at+2:]
	}
}
