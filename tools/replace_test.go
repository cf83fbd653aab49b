package tools_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"trajgen/tools"
)

func TestReplace(t *testing.T) {
	tests := []struct {
		name           string
		text, old, new string
		want           string // "" when nothing may be found
		how            string
		n              int
	}{
		{"overlap", "aaa", "aa", "b", "ba", "exact", 1},
		{"trimmed lines", "if x:\n    a = 1  \n    b = 2\n", "a = 1\nb = 2", "a = 3\nif a:\n    b = 4", "if x:\n    a = 3\n    if a:\n        b = 4\n", "line_trimmed", 1},
		{"overlapping windows", "x\n x\n  x\n", "x\nx", "y", "y\n  x\n", "line_trimmed", 1},
		{"dedent", "a:\n  b\n  c\n", "        b\n        c", "        b\n        d", "a:\n  b\n  d\n", "line_trimmed", 1},
		{"tabs", "f:\n\tif x:\n\t\ty\n", "    if x:\n        y", "    if x:\n        z\n            w", "f:\n\tif x:\n\t\tz\n\t\t\tw\n", "line_trimmed", 1},
		{"trailing newline", "  a\nb\n", "a\n", "c\n", "  c\nb\n", "exact", 1},
		{"space inside", "a  b   c", "a b", "X", "X   c", "whitespace_normalized", 1},
		{"not within words", "xa  bx a  b", "a b", "X", "xa  bx X", "whitespace_normalized", 1},
		{"escapes", "a\nb\n", `a\nb`, `c\nd`, "c\nd\n", "escape_normalized", 1},
		{"escapes meant in new", "a\tb\n", `a\tb`, "print('\\n')\nx", "print('\\n')\nx\n", "escape_normalized", 1},
		{"quotes", "f(\"a\")\n", `f(\"a\")`, `f(\"b\")`, "f(\"b\")\n", "escape_normalized", 1},
		{"quotes in new", "a\nb\n", `a\nb`, `a\nf(\"b\")`, "a\nf(\"b\")\n", "escape_normalized", 1},
		{"backslashes", "f(\"a\\n\")\n", `f(\"a\\n\")`, `f(\"b\\t\")`, "f(\"b\\t\")\n", "escape_normalized", 1},
		{"one backslash or two", "f(\"a\")\n", `f(\"a\")`, `f(\"a\\n\")`, "", "", 0},
		{"a \\n of the source's or not", "a\nb\n", `a\nb`, `f('\n')`, "", "", 0},
		{"blank lines around", "  foo(1)\n", "\n\nfoo(1)\n\n", "\nbar(1)\n", "  bar(1)\n", "trimmed_boundary", 1},
		{"blank lines around, dedented", "    foo\n", "\n    foo\n\n", "\n  foo\n  bar\n\n", "  foo\n  bar\n", "trimmed_boundary", 1},
		{"blank lines around indented lines", "  foo\n  x\n", "\n\nfoo\nx\n\n", "\n\nbar\ny\n\n", "  bar\n  y\n", "trimmed_boundary", 1},
		{"blank lines around, deleted", "a\n  foo\nb\n", "\nfoo\n\n", "\n", "a\nb\n", "trimmed_boundary", 1},
		{"without a final newline", "one\n two", "two\n", "TWO\n", "one\n TWO", "line_trimmed", 1},
		{"flattened", "if x:\n    foo()\n", "if x:\nfoo()", "if x:\nbar()", "", "", 0},
		{"flattened, first line alone", "if x:\n    foo()\n", "if x:\nfoo()", "y()", "y()\n", "line_trimmed", 1},
		{"decomposed", "cafe\u0301 a\n", "caf\u00e9", "tea", "tea a\n", "unicode_normalized", 1},
		{"dash that is not meant", "a — b, “c” d\n", `a - b, "c" d`, `a - b, "c" e`, "a — b, “c” e\n", "unicode_normalized", 1},
		{"dash that is meant", "a — b, “c” d\n", `a - b, "c" d`, `a, b, "c" d`, "a, b, “c” d\n", "unicode_normalized", 1},
		{"tab that is not meant", "int\tfoo =  1;  // x\n", "int foo = 1; // x", "int foo = 2; // x", "int\tfoo =  2;  // x\n", "whitespace_normalized", 1},
		{"space that is meant", "a  b\tc\n", "a b c\n", "a   b c\n", "a   b\tc\n", "whitespace_normalized", 1},
		{"quotes", "say “hi” — now\n", `say "hi" - now`, "done", "done\n", "unicode_normalized", 1},
		{"part of an ellipsis", "wait…\n", "wait..", "x", "", "", 0},
		{"alike is not equal", "def f():\n  beta(2)\n", "beta(9)", "x", "", "", 0},
		{"white space only", "a  b", "\t", "x", "", "", 0},
		{"anchors", "begin\n  one\nend\n", "begin\n  two\nend", "x", "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, how, n := tools.Edits(tt.text, tt.old, tt.new)
			if n != tt.n || how != tt.how || n > 0 && got != tt.want {
				t.Errorf("got %q by %q (%d), want %q by %q (%d)", got, how, n, tt.want, tt.how, tt.n)
			}
		})
	}
}

// TestHostileWork gives what would take hours if the work were not bounded.
func TestHostileWork(t *testing.T) {
	const n = 1 << 19
	tests := map[string]func(){
		"windows":   func() { tools.Edits(strings.Repeat("a\n", 8*n), strings.Repeat(" a\n", n)+"b", "x") },
		"words":     func() { tools.Edits(strings.Repeat("a", 8*n)+" ", strings.Repeat("a", n)+"\t\t", "x") },
		"reindents": func() { tools.Edits(strings.Repeat("  a\n", n), "\ta", strings.Repeat("b\n", 1000)) },
		"add":       func() { tools.Patched("", "*** Add File: f\n"+strings.Repeat("+x\n", n)) },
		"hunks": func() {
			tools.Patched(strings.Repeat("a\n", n), "*** Update File: f\n"+strings.Repeat("@@\n-a\n+b\n", n/8))
		},
		"hints": func() {
			tools.Patched(strings.Repeat("a\n", n), "*** Update File: f\n"+strings.Repeat("@@ b\n", n/8)+"+b")
		},
		"additions": func() { tools.Patched("a\n", "*** Update File: f\n a\n"+strings.Repeat("+b\n", n)) },
	}
	for name, work := range tests {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				work()
			}()
			select {
			case <-done:
			case <-time.After(5 * time.Minute): // under the race detector, on a machine that has other things to do
				t.Fatal("not done after five minutes")
			}
		})
	}
}

// TestReplaceAllExact holds replace_all to the standard library where old is in the text.
func TestReplaceAllExact(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab \n\tü")))
	rapid.Check(t, func(t *rapid.T) {
		in, new := text.Draw(t, "text"), text.Draw(t, "new")
		old := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\tü")), 1, 4, -1).Draw(t, "old")
		if !strings.Contains(in, old) {
			return
		}
		got, how, n := tools.Edits(in, old, new)
		if want := strings.ReplaceAll(in, old, new); got != want || how != "exact" || n != strings.Count(in, old) {
			t.Fatalf("got %q (%s, %d), want %q", got, how, n, want)
		}
	})
}

func FuzzReplace(f *testing.F) {
	f.Add("x\n x\n  x\n", "x\nx", "y")
	f.Add("a \u201cb\u201d c\u2026", `"b" c.`, "z")
	f.Add("\ta\n", `\ta\n`, `\tb`)
	f.Add("a\r\n  b\r\nc", "a\nb", "x\ny")
	f.Add("  foo\n  x", "\n\nfoo\nx\n\n", "\nbar\n\n")
	f.Add("if x:\n    foo()\n", "if x:\nfoo()", "if x:\nbar()")
	f.Add("cafe\u0301 au lait\u2026", "caf\u00e9 au", "\u0301")
	f.Add("a  a\ta", "a a", "b")
	f.Add("a — b, “c” d", "a - b, \"c\" d", "a - b, \"e\" d")
	f.Add("int\tfoo =  1; e\u0301", "int foo = 1; \u00e9", "int  foo = 1; \u00e8")
	f.Fuzz(func(t *testing.T, text, old, new string) {
		if !utf8.ValidString(text) || !utf8.ValidString(old) || !utf8.ValidString(new) || old == "" || len(text) > 1<<12 {
			return
		}
		got, how, edits := tools.EditsOf(text, old, new)
		if (how == "") != (len(edits) == 0) {
			t.Errorf("%d edits by %q", len(edits), how)
		}
		// Nothing but the matches changes, and each is what was looked for, white space and spelling apart.
		want, at := "", 0
		for _, e := range edits {
			if e.Start < at || e.End < e.Start || !utf8.ValidString(text[e.Start:e.End]) {
				t.Fatalf("edit %+v after %d in %q", e, at, text)
			}
			if plain := plainText(text[e.Start:e.End]); plain != plainText(old) && !(how == "escape_normalized" && slices.Contains(tools.Unescaped(old), text[e.Start:e.End])) {
				t.Errorf("%q was taken for %q (%s)", text[e.Start:e.End], old, how)
			}
			if how != "escape_normalized" && plainText(e.Text) != plainText(new) {
				t.Errorf("%q became %q, want %q (%s)", text[e.Start:e.End], e.Text, new, how)
			}
			want, at = want+text[at:e.Start]+e.Text, e.End
		}
		if want += text[at:]; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q", text, got)
		}
		if strings.Contains(text, old) && got != strings.ReplaceAll(text, old, new) {
			t.Errorf("exact: got %q", got)
		}
		// In a file with other line ends, too.
		raw := strings.ReplaceAll(text, "\n", "\r\n")
		if !strings.ContainsAny(text, "\r\x00\uFEFF") && !strings.Contains(new, "\r") && strings.Contains(text, "\n") {
			if data := tools.EditedFile(raw, old, new); data != strings.ReplaceAll(got, "\n", "\r\n") {
				t.Errorf("with CRLF: %q became %q", raw, data)
			}
		}
	})
}

// plainText is a text without white space, in ASCII punctuation.
func plainText(text string) string {
	var b strings.Builder
	for _, r := range tools.PlainPunctuation(text) {
		if !unicode.IsSpace(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestV4A(t *testing.T) {
	const file = "import os\n\ndef a():\n    x = 1\n    return x\n\ndef b():\n    x = 1\n    return x\n"
	tests := []struct {
		name, text, patch, want, err string
	}{
		{"context", file, "*** Update File: f\n     x = 1\n     return x\n \n def b():\n-    x = 1\n+    x = 2", strings.Replace(file, "def b():\n    x = 1", "def b():\n    x = 2", 1), ""},
		{"lost space of blank line", file, "*** Update File: f\n import os\n\n-def a():\n+def c():", strings.Replace(file, "a()", "c()", 1), ""},
		{"ambiguous", file, "*** Update File: f\n-    x = 1\n+    x = 2", "", "match at 2 places (lines 4, 8)"},
		{"hint", file, "*** Update File: f\n@@ def b():\n-    x = 1\n+    x = 2\n@@\n-    return x\n+    return -x", strings.Replace(file, "def b():\n    x = 1\n    return x", "def b():\n    x = 2\n    return -x", 1), ""},
		{"in order", file, "*** Update File: f\n@@ def b():\n-    x = 1\n+    x = 2\n@@ def a():\n-    x = 1\n+    x = 3", "", "hint \"@@ def a():\" is not in the file"},
		{"unknown hint", file, "*** Update File: f\n@@ def z():\n-    x = 1\n+    x = 2", "", "not in the file"},
		{"hint on many lines", file, "*** Update File: f\n@@ return x\n+# end", "", "on 2 lines (5, 9)"},
		{"addition after hint", file, "*** Update File: f\n@@ import os\n+import re", strings.Replace(file, "import os\n", "import os\nimport re\n", 1), ""},
		{"addition without place", file, "*** Update File: f\n+import re", "", "give context lines"},
		{"addition at end", "a\nb", "*** Update File: f\n@@\n+c\n*** End of File", "a\nb\nc\n", ""},
		{"empty file", "", "*** Update File: f\n+c", "c\n", ""},
		{"unified position", file, "*** Update File: f\n@@ -1,3 +1,3 @@ import os\n-def a():\n+def c():", strings.Replace(file, "a()", "c()", 1), ""},
		{"space after stars", "a\n", "***Begin Patch\n***Update File: f\n-a\n+b\n***End Patch", "b\n", ""},
		{"indentation", "if x:\n\ta\n\tb\n", "*** Update File: f\n     a\n-    b\n+    c\n+        d", "if x:\n\ta\n\tc\n\t\td\n", ""},
		{"indented like what it replaces", "x = 1\n  y\n", "*** Update File: f\n x = 1\n-y\n+z", "x = 1\n  z\n", ""},
		{"anybody's indentation", "x = 1\n  y\n", "*** Update File: f\n x = 1\n y\n+z", "", "indented alike"},
		{"context of two hunks", "a\nb\nc\n", "*** Update File: f\n-a\n+A\n b\n@@\n b\n-c\n+C", "A\nb\nC\n", ""},
		{"change of two hunks", "a\nb\nc\n", "*** Update File: f\n-a\n-b\n+B\n@@\n b\n-c\n+C", "", "not found after line 2"},
		{"delete last line", "a\nb", "*** Update File: f\n a\n-b", "a\n", ""},
		{"no final newline kept", "a\nb", "*** Update File: f\n-a\n+c\n b", "c\nb", ""},
		{"crlf", "a\r\nb\r\n", "*** Update File: f\r\n-a\r\n+c\r\n+d\r\n b\r\n", "c\r\nd\r\nb\r\n", ""},
		{"missing lines", "alpha beta\n", "*** Update File: f\n-alpha betta\n+x", "", "most similar place is:\n1|alpha beta"},
		{"garbage", "a\n", "please change a to b", "", "expected a section"},
		{"garbage in update", "a\n", "*** Update File: f\nfoo", "", "begins with"},
		{"garbage after end", "a\n", "*** Update File: f\n-a\n+b\n*** End Patch\nmore", "", "after *** End Patch"},
		{"empty", "a\n", "*** Begin Patch\n*** End Patch", "", "no section"},
		{"move without arrow", "a\n", "*** Move File: f", "", "arrow"},
		{"dots", "a\n", "*** Update File: d/../f\n-a\n+b", "", "'..'"},
		{"no change", "a\n", "*** Update File: f\n a", "", "no '+' or '-'"},
		{"unknown section", "a\n", "*** Rename File: f", "", "unknown section"},
		{"add without plus", "a\n", "*** Add File: f\nx", "", "begins with '+'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tools.Patched(tt.text, tt.patch)
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %q, error %v, want error %q", got, err, tt.err)
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err == "" && got != tt.want:
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzV4A(f *testing.F) {
	f.Add("a\nb\n", "*** Update File: f\n@@ a\n-b\n+c")
	f.Add("a", "*** Update File: f\n a\n+c\n*** End of File")
	f.Add("\r\n\r\n", "*** Update File: f\n-\n+x\n@@\n-\n+y")
	f.Add("a\nb\nc", "*** Update File: f\n-a\n+A\n b\n@@\n b\n-c\n+C")
	f.Add("x = 1\n  y\n", "*** Update File: f\n x = 1\n-y\n+z\n*** End of File")
	f.Fuzz(func(t *testing.T, text, patch string) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		got, err := tools.Patched(text, patch)
		if err != nil && got != "" {
			t.Errorf("error %v and text %q", err, got)
		}
		// What is not touched stays: every line of the result is in the file or in the patch.
		have := map[string]bool{"": true}
		for _, line := range strings.Split(text+"\n"+patch, "\n") {
			line = strings.TrimSuffix(line, "\r")
			have[strings.TrimSpace(line)] = true
			have[strings.TrimSpace(strings.TrimPrefix(line, "+"))] = true
		}
		for _, line := range strings.Split(strings.TrimPrefix(got, "\uFEFF"), "\n") {
			if line = strings.TrimSpace(strings.TrimSuffix(line, "\r")); !have[line] && !have["\uFEFF"+line] {
				t.Errorf("line %q of %q comes from nowhere", line, got)
			}
		}
	})
}

func TestClean(t *testing.T) {
	input := "a\x1b[1;31mred\x1b[0m ü\xff \x1b]0;title\x07b\x1b]broken\nline\x1b(Bc \xe2\x82"
	want := "ared ü\uFFFD b]broken\nlinec \uFFFD\uFFFD"
	if got := tools.Clean(1000, input); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		var pieces []string
		for rest := input; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		for _, limit := range []int{1000, 10} {
			if got, want := tools.Clean(limit, pieces...), tools.Clean(limit, input); got != want {
				t.Fatalf("limit %d, in pieces %q: got %q, want %q", limit, pieces, got, want)
			}
		}
	})
}
