package tools

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// splitLines splits text into lines without their newlines. A newline at the end begins no further line; ended reports whether
// there is one.
func splitLines(text string) (lines []string, ended bool) {
	if text == "" {
		return nil, false
	}
	ended = strings.HasSuffix(text, "\n")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), ended
}

// textFile is a text as the model sees it: without byte order mark and with '\n' as line end. Changes are applied to the
// original, which keeps both.
type textFile struct {
	text string
	mark bool
	crs  []int // offsets in text of the newlines that are "\r\n" in the original
}

// parseText returns false for binary data.
func parseText(data []byte) (textFile, bool) {
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return textFile{}, false
	}
	raw, mark := strings.CutPrefix(string(data), byteOrderMark)
	file := textFile{text: raw, mark: mark}
	if !strings.Contains(raw, "\r\n") {
		return file, true
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\r' && i+1 < len(raw) && raw[i+1] == '\n' {
			file.crs = append(file.crs, b.Len())
			continue
		}
		b.WriteByte(raw[i])
	}
	file.text = b.String()
	return file, true
}

// edit replaces text[start:end].
type edit struct {
	start, end int
	text       string
}

// apply makes disjoint, sorted edits, and returns the new text and the bytes to write. Untouched lines keep their line ends;
// new lines end like the line that they replace, or like most of the file.
func (f textFile) apply(edits []edit) (text string, data []byte) {
	var plain, raw strings.Builder
	if f.mark {
		raw.WriteString(byteOrderMark)
	}
	at := 0
	for _, e := range edits {
		plain.WriteString(f.text[at:e.start])
		f.original(&raw, at, e.start)
		plain.WriteString(e.text)
		if f.endsCR(e) {
			raw.WriteString(strings.ReplaceAll(strings.ReplaceAll(e.text, "\r\n", "\n"), "\n", "\r\n"))
		} else {
			raw.WriteString(e.text)
		}
		at = e.end
	}
	plain.WriteString(f.text[at:])
	f.original(&raw, at, len(f.text))
	return plain.String(), []byte(raw.String())
}

func (f textFile) original(b *strings.Builder, from, to int) {
	for i := sort.SearchInts(f.crs, from); i < len(f.crs) && f.crs[i] < to; i++ {
		b.WriteString(f.text[from:f.crs[i]])
		b.WriteByte('\r')
		from = f.crs[i]
	}
	b.WriteString(f.text[from:to])
}

func (f textFile) endsCR(e edit) bool {
	if n := strings.IndexByte(f.text[e.start:e.end], '\n'); n >= 0 {
		i := sort.SearchInts(f.crs, e.start+n)
		return i < len(f.crs) && f.crs[i] == e.start+n
	}
	return 2*len(f.crs) > strings.Count(f.text, "\n") // as most lines do
}

// lineOf returns the number, from 1, of the line that contains an offset.
func lineOf(text string, offset int) int { return strings.Count(text[:offset], "\n") + 1 }

// similarity is the share of byte pairs that two texts have in common, from 0 to 1.
func similarity(a, b string) float64 {
	if a == b {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int, len(a))
	for i := 0; i+1 < len(a); i++ {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := 0; i+1 < len(b); i++ {
		if p := [2]byte{b[i], b[i+1]}; pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}
