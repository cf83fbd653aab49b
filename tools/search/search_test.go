package search_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/search"
)

// plant makes a tree with everything that ripgrep leaves out by default, and enters it.
func plant(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"a.txt":                    "alpha\nbeta\nalpha beta\n",
		"a-b/c.txt":                "alpha\n",
		"a/b.txt":                  "ALPHA\nalpha 1\n\nalpha 22\n",
		".hidden.txt":              "alpha\n",
		".dir/x.txt":               "alpha\n",
		"nul.txt":                  "alpha\n\x00",
		"latin.txt":                "caf\xe9 alpha\n",
		"uml.txt":                  "\u00fcber alpha\nna\u00efve\n",
		"open.txt":                 "no end alpha",
		"empty.txt":                "",
		"x.log":                    "alpha\n",
		".ignore":                  "# comment\n*.tmp\n!keep.tmp\n/only-here\n",
		"y.tmp":                    "alpha\n",
		"keep.tmp":                 "alpha\n",
		"only-here":                "alpha\n",
		"a/only-here":              "alpha\n",
		"repo/.git/config":         "alpha\n",
		"repo/.git/info/exclude":   "secret*\n",
		"repo/secret.txt":          "alpha\n",
		"repo/.gitignore":          "*.log\nbuild/\n/top.txt\ndocs/*.md\nvendor/**\n!vendor/keep.txt\n\\#odd\ntrail\\ \nb{r,x}ace\n[ab]x.txt\n**/deep/z.txt\n!.wanted\n",
		"repo/x.log":               "alpha\n",
		"repo/build/out.txt":       "alpha\n",
		"repo/top.txt":             "alpha\n",
		"repo/sub/top.txt":         "alpha\n",
		"repo/docs/a.md":           "alpha\n",
		"repo/docs/in/a.md":        "alpha\n",
		"repo/vendor/x.txt":        "alpha\n",
		"repo/vendor/keep.txt":     "alpha\n",
		"repo/#odd":                "alpha\n",
		"repo/brace":               "alpha\n",
		"repo/ax.txt":              "alpha\n",
		"repo/cx.txt":              "alpha\n",
		"repo/p/deep/z.txt":        "alpha\n",
		"repo/.wanted":             "alpha\n",
		"repo/sub/.gitignore":      "!x.log\n*.txt\n",
		"repo/sub/x.log":           "alpha\n",
		"repo/sub/inner/.git/HEAD": "x\n",
		"repo/sub/inner/y.log":     "alpha\n",
		"repo/sub/inner/y.txt":     "alpha\n",
		"repo/sub/.rgignore":       "!top.txt\n",
	} {
		write(t, name, content)
	}
	if err := os.Symlink("a.txt", "link.txt"); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, args search.Args) search.Found {
	t.Helper()
	if args.Limit == 0 {
		args.Limit = 1000
	}
	if args.Path == "" {
		args.Path = "."
	}
	found, err := search.Run(args)
	if err != nil || found.Failed != "" {
		t.Fatalf("search %+v: %v %s", args, err, found.Failed)
	}
	return found
}

// TestRipgrep holds search to what ripgrep prints, in the order of --sort path.
func TestRipgrep(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		if os.Getenv("REQUIRE_SANDBOXES") != "" { // as in CI
			t.Fatal(err)
		}
		t.Skip("ripgrep is not installed")
	}
	plant(t)
	rg := func(args ...string) string {
		cmd := exec.Command("rg", append([]string{"--sort", "path", "--no-ignore-global"}, args...)...)
		out, _ := cmd.Output() // exit code 1 is not a match
		return string(out)
	}
	for _, glob := range []string{"", "*.txt", "*.log", "!*.txt", "repo/**", "/a.txt", ".*", "a*/*.txt", "*.{log,md}", "!repo", "sub/*.txt", "**/top.txt"} {
		for _, pattern := range []string{"alpha", "(?i)alpha", "^alpha$", `\d+$`, "^$", "a.*a", "nothing", `\bbeta\b`, "alpha|na.ve"} {
			t.Run(pattern+" in "+glob, func(t *testing.T) {
				args := []string{"-n", "-H", "--no-heading", "-e", pattern}
				if glob != "" {
					args = append(args, "-g", glob)
				}
				var got strings.Builder
				for _, line := range *run(t, search.Args{Pattern: pattern, FileGlob: glob}).Matches {
					fmt.Fprintf(&got, "%s:%d:%s\n", line.Path, line.Line, line.Content)
				}
				if diff := cmp.Diff(strings.ToValidUTF8(rg(args...), "\uFFFD"), got.String()); diff != "" {
					t.Errorf("-ripgrep +search:\n%s", diff)
				}
			})
		}
		if glob == "" {
			continue
		}
		got := strings.Join(append(*run(t, search.Args{Target: "files", Pattern: glob}).Files, ""), "\n")
		if strings.ContainsAny(glob, "*/") {
			if diff := cmp.Diff(rg("--files", "-g", glob), got); diff != "" {
				t.Errorf("files %s (-ripgrep +search):\n%s", glob, diff)
			}
		}
	}
	for _, path := range []string{"repo", "repo/sub", ".dir", "repo/build", "a.txt", "repo/x.log", "."} {
		got := strings.Join(append(*run(t, search.Args{Pattern: "alpha", OutputMode: "files_only", Path: path}).Files, ""), "\n")
		want := strings.ReplaceAll(rg("-l", "alpha", path), "./", "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("path %s (-ripgrep +search):\n%s", path, diff)
		}
	}
}

// TestPages puts pages together, of files that end anywhere in a piece of what is read at once.
func TestPages(t *testing.T) {
	t.Chdir(t.TempDir())
	for n := range 40 {
		var b strings.Builder
		for i := range 1000 * (n % 4) {
			fmt.Fprintf(&b, "line %d of %d\n", i, n)
			if i%7 == 0 {
				b.WriteString("needle " + strings.Repeat("x", i) + "\n")
			}
		}
		write(t, fmt.Sprintf("f%02d", n), b.String())
	}
	var want []string
	all := run(t, search.Args{Pattern: "^needle", Limit: 1 << 20})
	for _, line := range *all.Matches {
		want = append(want, fmt.Sprintf("%s:%d", line.Path, line.Line))
	}
	if all.TotalCount != len(want) || all.Truncated {
		t.Fatalf("total %d of %d, truncated %v", all.TotalCount, len(want), all.Truncated)
	}
	var got []string
	for offset := 0; ; offset += 333 {
		page := run(t, search.Args{Pattern: "^needle", Limit: 333, Offset: offset, Context: 3})
		if page.TotalCount != len(want) || page.Truncated != (offset+333 < len(want)) {
			t.Errorf("offset %d: total %d, truncated %v", offset, page.TotalCount, page.Truncated)
		}
		for _, line := range *page.Matches {
			got = append(got, fmt.Sprintf("%s:%d", line.Path, line.Line))
			if line.Line > 3 && len(line.Before) != 3 {
				t.Errorf("%s:%d has %d lines before it", line.Path, line.Line, len(line.Before))
			}
		}
		if !page.Truncated {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func FuzzMatch(f *testing.F) {
	for _, pattern := range []string{"a", "^a$", `\ba\b`, "(?i)ab|c", "x*", `\d{2,3}$`, "[^a]b", "a.c", `\Aa|b\z`, "ab|bc|cd", `\w+\s`, "(?s)a.b", "\u00fc"} {
		f.Add(pattern, "a\nab c\r\n\nxx12\r\n\u00fc a\xffb\nabc")
	}
	f.Add("\r", "\r")
	f.Add("^$", "\xc3") // a last line without an end, left to package regexp
	f.Add(`a\r`, "a\r\r\n")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 1<<12 {
			return
		}
		got, want, err := search.Counted(pattern, []byte(text))
		if err == nil && got != want {
			t.Errorf("%q in %q: %d lines, want %d", pattern, text, got, want)
		}
	})
}

// TestLiterals looks for what is found eight places at a time, and skipped, at every offset of long lines.
func TestLiterals(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "%s handler Needle-%d nEEDLE %s\r\n%*d \u00fcber ne\xffedle\n", strings.Repeat("e", i%17), i%7, strings.Repeat("nd", i%5), i%23, i)
	}
	b.WriteString("\u0130x\n\u0130xy ix IX\nixy\n")
	text := []byte(b.String())
	patterns := []string{
		"Needle-3", "(?i)needle", "(?i)NEEDLE-", "e", "(?i)d", "Needle-1|zz|(?i)HANDLER needle-2", "(?i)k|handler",
		`\d{2} `, `\bd`, `^\d`, `^ +1\d* `, `^(e|n)`, `[2-4]$`, "[x-z\u00fc]b", "(?i)\u017f|7 \u00fc", "(?i)\u0130x", "(?i)\u0130XY|zz", "\u0130x", `ndnd$`, "$", `\B3\B`,
	}
	for _, pattern := range patterns {
		for from := range 20 {
			got, want, err := search.Counted(pattern, text[from:])
			if got != want || err != nil {
				t.Errorf("%q from %d: %d lines, want %d, %v", pattern, from, got, want, err)
			}
		}
	}
}

// TestEncodings searches what begins with a mark as ripgrep does, and files with a NUL far inside up to it in every mode.
func TestEncodings(t *testing.T) {
	t.Chdir(t.TempDir())
	wide := func(order binary.AppendByteOrder, text string) string {
		var b []byte
		for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
			b = order.AppendUint16(b, unit)
		}
		return string(b)
	}
	long := strings.Repeat("\U0001F600 filler\r\n", 40_000) + "alpha\n"
	write(t, "8.txt", "\uFEFFalpha\n")
	write(t, "16le.txt", wide(binary.LittleEndian, "x\r\nalpha \u00fc\U0001F600\r\n"))
	write(t, "16be.txt", wide(binary.BigEndian, "alpha"))
	write(t, "16long.txt", wide(binary.LittleEndian, long))
	write(t, "16nul.txt", wide(binary.LittleEndian, "alpha\x00\n"))
	write(t, "late.txt", strings.Repeat("alpha\n", 100_000)+"alpha\x00\nalpha\n")
	write(t, "mark.txt", "\xFF\xFE")
	var got []string
	for _, line := range *run(t, search.Args{Pattern: `^alpha\b`, FileGlob: "[18]*"}).Matches {
		got = append(got, fmt.Sprintf("%s:%d:%s", line.Path, line.Line, line.Content))
	}
	want := []string{"16be.txt:1:alpha", "16le.txt:2:alpha \u00fc\U0001F600", "16long.txt:40001:alpha", "8.txt:1:alpha"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	late := run(t, search.Args{Pattern: "alpha", Path: "late.txt", Offset: 99_999, Limit: 10})
	if late.TotalCount != 100_000 || late.Truncated || len(*late.Matches) != 1 || (*late.Matches)[0].Line != 100_000 {
		t.Errorf("a late NUL: %+v", late)
	}
	for _, mode := range []string{"files_only", "count"} {
		if found := run(t, search.Args{Pattern: "alpha", FileGlob: "late.txt", OutputMode: mode}); found.TotalCount == 0 {
			t.Errorf("a late NUL, %s: %+v", mode, found)
		}
	}
}

// TestLongPages holds that a page of long lines with much context ends early and says how to go on, without a gap.
func TestLongPages(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "long.txt", strings.Repeat(strings.Repeat("\x01", 600)+"\n", 500))
	total, pages := 0, 0
	for offset := 0; ; pages++ {
		found, err := search.Run(search.Args{Pattern: "\x01", Path: ".", Limit: 1000, Context: 20, Offset: offset})
		if err != nil || found.TotalCount != 500 || len(*found.Matches) == 0 {
			t.Fatalf("offset %d: %+v, %v", offset, found, err)
		}
		for i, line := range *found.Matches {
			if line.Line != offset+i+1 {
				t.Fatalf("result %d is line %d", offset+i, line.Line)
			}
		}
		offset += len(*found.Matches)
		total += len(*found.Matches)
		if !found.Truncated {
			break
		}
		if want := fmt.Sprintf("go on with offset=%d", offset); !strings.Contains(found.Warning, want) {
			t.Fatalf("warning %q, want %q", found.Warning, want)
		}
	}
	if total != 500 || pages < 2 {
		t.Errorf("%d results on %d pages", total, pages+1)
	}
}

// The match of a long line is in what is shown of it.
func TestExcerptHoldsMatch(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, tt := range map[string]struct{ line, prefix, suffix string }{
		"far":       {strings.Repeat("ü", 600) + "needle" + strings.Repeat("z", 900), "..." + strings.Repeat("ü", 100) + "needlez", "z..."},
		"at an end": {strings.Repeat("a", 600) + "needle", "..." + strings.Repeat("a", 100) + "needle", "needle"},
		"near":      {"a needle" + strings.Repeat("z", 900), "a needlez", "z..."},
		"across":    {strings.Repeat("a", 497) + "needle", "..." + strings.Repeat("a", 100) + "needle", "needle"},
		"short":     {strings.Repeat("a", 494) + "needle", "aaa", "needle"},
	} {
		write(t, "a.txt", "x\n"+tt.line+"\ny\n")
		found, err := search.Run(search.Args{Pattern: "needle|nothing", Path: ".", Limit: 10, Context: 1})
		if err != nil || len(*found.Matches) != 1 {
			t.Fatal(err, found)
		}
		got := (*found.Matches)[0].Content
		if !strings.HasPrefix(got, tt.prefix) || !strings.HasSuffix(got, tt.suffix) || !strings.Contains(got, "needle") || utf8.RuneCountInString(got) > 506 {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
