package tools_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"trajgen/tools"
)

// TestCaptureLimit holds that output with its note never exceeds a limit, uses it up, and does not depend on how the
// output was cut into writes.
func TestCaptureLimit(t *testing.T) {
	for n := range 700 {
		text := strings.Repeat("aé", n/2) + strings.Repeat("b", n%2)
		got := tools.Clean(200, text)
		length := utf8.RuneCountInString(got)
		switch {
		case n <= 200 && got != text:
			t.Fatalf("%d characters became %q", n, got)
		case n > 200 && (length > 200 || length < 199):
			t.Fatalf("%d characters became %d: %q", n, length, got)
		}
		if other := tools.Clean(200, text[:len(text)/3], text[len(text)/3:]); other != got {
			t.Fatalf("in two writes: got %q, want %q", other, got)
		}
	}
	if got := tools.Clean(200, strings.Repeat("x", 200), "\r\n\r\n"); got != strings.Repeat("x", 200) {
		t.Errorf("white space at the end counted: %q", got)
	}
}
