package scripted

import (
	"strings"
	"unicode/utf8"
)

// The tokenizer has a token for every byte, whose id is its value, and one for each mark below. Encoding loses
// nothing: detokenizing gives the text back byte by byte.
var marks = [...]string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
	"<tool_response>", "</tool_response>",
}

const firstMark = 256

// firstToken is the token that a text begins with, and its length.
func firstToken(s string) (id int32, size int) {
	if s[0] == '<' {
		for i, m := range marks {
			if strings.HasPrefix(s, m) {
				return firstMark + int32(i), len(m)
			}
		}
	}
	return int32(s[0]), 1
}

// countTokens is the number of tokens of a text.
func countTokens(s string) int {
	n := len(s)
	for _, m := range marks {
		n -= strings.Count(s, m) * (len(m) - 1)
	}
	return n
}

// encode gives the tokens of a text.
func encode(s string) []int32 {
	ids := make([]int32, 0, len(s))
	for s != "" {
		id, size := firstToken(s)
		ids = append(ids, id)
		s = s[size:]
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
		_, size := firstToken(s[at:])
		at += size
	}
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}
