package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns the part of a text that begins after offset characters and has at most limit. It ends after a block, else after a
// line, else after a word, where one ends in its second half; and never within a line that opens or closes a block of code. The
// next part begins at next, which is 0 where this is the last one. All parts together are the text.
func Cut(text string, offset, limit int) (part string, next int) {
	offset = max(offset, 0)
	begin := skip(text, offset)
	end := begin + skip(text[begin:], max(limit, 1))
	if end == len(text) {
		return text[begin:], 0
	}
	end = boundary(text, begin, end)
	if end == len(text) {
		return text[begin:], 0
	}
	return text[begin:end], offset + utf8.RuneCountInString(text[begin:end])
}

// skip returns where the first n characters of a text end.
func skip(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// boundary returns where the part of a text ends that begins at begin and has to end at limit, or before.
func boundary(text string, begin, limit int) int {
	inCode := false
	for line := range strings.Lines(text[:begin]) {
		inCode = inCode != isFence(line)
	}
	block, at := begin, begin // where the last block and the last line end
	for line := range strings.Lines(text[begin:limit]) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		inCode = inCode != isFence(line)
		at += len(line)
		if !inCode && strings.TrimSpace(line) == "" {
			block = at
		}
	}
	half := begin + (limit-begin)/2
	if block > begin && block >= half {
		return block
	}
	line, _, whole := strings.Cut(text[at:], "\n")
	switch {
	case at > begin && (at >= half || isFence(line)):
		return at
	case isFence(line) && whole: // the part is a little longer than asked for
		return at + len(line) + 1
	case isFence(line):
		return len(text)
	}
	if word := strings.LastIndexFunc(text[half:limit], unicode.IsSpace); word >= 0 {
		_, size := utf8.DecodeRuneInString(text[half+word:])
		return half + word + size
	}
	return limit
}

// maxFence is more bytes than a line has that opens a block of code in earnest.
const maxFence = 100

// isFence reports whether a line opens or closes a block of code.
func isFence(line string) bool {
	mark := strings.TrimLeft(line, " ")
	return len(line) <= maxFence && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~"))
}
