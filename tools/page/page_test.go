package page_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"trajgen/tools/page"
)

// FuzzMake compares with pages that are cut from the whole text, however the text arrives.
func FuzzMake(f *testing.F) {
	f.Add("a\nb\r\n\nc", 1, 2)
	f.Add("\uFEFFa\n", 1, 10)
	f.Add("", 1, 1)
	f.Add(strings.Repeat("\u00fc", 2100)+"\nx", 1, 1)
	f.Fuzz(func(t *testing.T, text string, offset, limit int) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || offset < 1 || limit < 1 || offset > 1<<20 || limit > 2000 {
			return
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			lines = nil
		}
		var want []string
		for i := offset - 1; i < len(lines) && i < offset-1+limit; i++ {
			line := lines[i]
			if i == 0 {
				line = strings.TrimPrefix(line, "\uFEFF")
			}
			line = strings.TrimSuffix(line, "\r")
			if utf8.RuneCountInString(line) > page.MaxLine {
				line = string([]rune(line)[:page.MaxLine]) + "... [truncated]"
			}
			want = append(want, fmt.Sprintf("%d|%s", i+1, line))
		}
		content := strings.Join(want, "\n")
		got, err := page.Make(iotest.HalfReader(strings.NewReader(text)), offset, limit)
		if err != nil {
			t.Fatal(err)
		}
		if utf8.RuneCountInString(content) > page.MaxContent {
			if !got.TooLarge() || got.Content != "" {
				t.Errorf("a page of %d characters is none too large", utf8.RuneCountInString(content))
			}
			content = ""
		}
		if got.Content != content || got.TotalLines != len(lines) || got.Size != int64(len(text)) || got.Sum != page.Sum([]byte(text)) {
			t.Errorf("%q from %d, %d lines: got %+v, want %q of %d", text, offset, limit, got, content, len(lines))
		}
	})
}

func TestForbidden(t *testing.T) {
	for name, want := range map[string]bool{
		"/dev/null": false, "/dev/zero": true, "/dev/fd/0": true, "/dev/shm/x": false, "/proc/cpuinfo": false, "/proc/7/environ": true,
		"/proc/self/fd/0": true, "/proc/7/task/8/maps": true, "/proc/7/status": false, "/w/dev/zero": false, "/proc/kcore": true,
	} {
		if got := page.Forbidden(name); got != want {
			t.Errorf("Forbidden(%q) = %v, want %v", name, got, want)
		}
	}
}
