package extract_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"trajgen/tools/web/extract"
)

func TestCut(t *testing.T) {
	code := "text text text\n\n```go\na\n\nb\n```\n\nend of it"
	tests := []struct {
		name          string
		text          string
		offset, limit int
		part          string
		next          int
	}{
		{"all of it", "one\n\ntwo", 0, 8, "one\n\ntwo", 0},
		{"the rest", "one\n\ntwo", 5, 100, "two", 0},
		{"a block", "one\n\ntwo three", 0, 10, "one\n\n", 5},
		{"characters, not bytes", "äöü\n\nдва три", 0, 10, "äöü\n\n", 5},
		{"from a character on", "äöü\n\nдва три", 5, 4, "два ", 9},
		{"a line where the block ends too early", "a\n\nb b b b\nc c c c c", 0, 14, "a\n\nb b b b\n", 11},
		{"a word", "a\n\nlonglong word longlonglong", 0, 20, "a\n\nlonglong word ", 17},
		{"no boundary", "abcdefgh", 2, 3, "cde", 5},
		{"not the blank line of the code", code, 0, 26, "text text text\n\n", 16},
		{"not within the opening line", "aaaa\n```python\nx", 0, 9, "aaaa\n", 5},
		{"the whole opening line if it comes first", "```python\nx\ny", 0, 4, "```python\n", 10},
		{"after the text", "abc", 7, 5, "", 0},
		{"below the text", "abc", -7, 2, "ab", 2},
		{"no limit", "abc", 0, 0, "a", 1},
		{"empty", "", 0, 5, "", 0},
	}
	for _, tt := range tests {
		if part, next := extract.Cut(tt.text, tt.offset, tt.limit); part != tt.part || next != tt.next {
			t.Errorf("%s: got %q and %d, want %q and %d", tt.name, part, next, tt.part, tt.next)
		}
	}
}

// TestCutLosesNothing: the parts together are the text, whatever it is, and none is longer than asked for by more than a fence.
func TestCutLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"word", "слово ", "\n", "\n\n", "```go\n", "~~~\n", " ", "x", "字",
			"\xff"})).Draw(t, "pieces")
		text, limit := strings.Join(pieces, ""), rapid.IntRange(1, 40).Draw(t, "limit")
		var all strings.Builder
		for offset := 0; ; {
			part, next := extract.Cut(text, offset, limit)
			all.WriteString(part)
			if n := utf8.RuneCountInString(part); n > limit+100 || n == 0 && text != "" {
				t.Fatalf("%d characters of %d: %q", n, limit, part)
			}
			if next == 0 {
				break
			}
			if rest, _ := extract.Cut(text, next, 1<<30); fenceDivided(part, rest) {
				t.Fatalf("within a fence: %q, then %q", part, rest)
			}
			offset = next
		}
		if all.String() != text {
			t.Fatalf("%q became %q", text, all.String())
		}
	})
}

// fenceDivided reports whether the line that ends one part and begins the next is that of a fence.
func fenceDivided(part, rest string) bool {
	begun := part[strings.LastIndexByte(part, '\n')+1:]
	line, _, _ := strings.Cut(rest, "\n")
	whole := begun + line
	return begun != "" && len(whole) <= 100 && (strings.HasPrefix(strings.TrimLeft(whole, " "), "```") ||
		strings.HasPrefix(strings.TrimLeft(whole, " "), "~~~"))
}
