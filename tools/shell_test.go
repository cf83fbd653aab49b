package tools_test

import (
	"strings"
	"testing"
	"time"

	"trajgen/tools"
)

func TestExitMeaning(t *testing.T) {
	tests := []struct {
		command string
		code    int
		want    string
	}{
		{"grep x f", 1, "no match"}, {"grep x f", 2, ""}, {"grep x f", 0, ""}, {"cat f | grep -q 'a | b'", 1, "no match"},
		{"grep x f | wc -l", 1, ""}, {"echo 'x | grep'", 1, ""}, {"cd d && rg x", 1, "no match"}, {"make; grep x f", 1, "no match"},
		{"grep x f && echo found", 1, "no match"}, {"grep x f || echo none", 1, ""}, {"! grep x f", 1, ""},
		{"diff a b", 1, "differ"}, {"diff <(sort a) <(sort b)", 1, "differ"}, {"[ -e f ]", 1, "false"}, {"[[ -e f ]]", 1, "false"},
		{"test -e f", 1, "false"}, {"curl -f http://x", 22, "HTTP error"}, {"curl http://x", 7, "refused"}, {"git diff --exit-code", 1, "git diff"},
		{"sudo -u me grep x f", 1, "no match"}, {"FOO=1 timeout -s KILL 5 grep x f", 1, "no match"}, {"find / -name x 2>/dev/null", 1, "could not be read"},
		{"(cd d; grep x f)", 1, "no match"}, {"if grep x f; then exit 1; fi", 1, ""}, {"time grep x f", 1, "no match"}, {"'grep' x f", 1, "no match"},
		{"grep x f # | cat", 1, "no match"}, {"echo $(grep x f)", 1, ""}, {"python3 - <<'E'\ngrep\nE", 1, ""}, {"grep 'unfinished", 1, ""},
	}
	for _, tt := range tests {
		got := tools.ExitMeaning(tt.command, tt.code)
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("ExitMeaning(%q, %d) = %q, want %q", tt.command, tt.code, got, tt.want)
		}
	}
}

// TestForegroundHostile holds that a command cannot exhaust who reads it.
func TestForegroundHostile(t *testing.T) {
	for _, part := range []string{
		"(", "((", "{ ", "$(", "\"$(", "${a:-", "if ", "[[ ! ", "`", "a && ", "a|", "$((1?", "$((-", "<(", "@(", "a() ", "time ", "! ",
		"while ", "case x in x) ", "a=(", "[[ ( ", "$((a=", "a &", "cat <<E\n", "\\", "'", "coproc ",
	} {
		command := strings.Repeat(part, (1<<18)/len(part))
		began := time.Now()
		_ = tools.Foreground(command)
		_ = tools.ExitMeaning(command, 1)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q took %s", part, took)
		}
	}
	// The parser panics on some of what bash refuses, which was found by fuzzing.
	_ = tools.Foreground("cat <<E\x1b&#0\n000000000")
	if tools.Foreground("nohup ls\nif then") == nil {
		t.Error("a command in front of what bash refuses was not seen")
	}
	// What is long without being intricate is read.
	long := "cat > f.c <<'EOF'\n" + strings.Repeat("if (f(a[i])) { g(\"&\"); }\n", 5_000) + "EOF\nnohup x"
	if tools.Foreground(long) == nil {
		t.Error("a command behind a long here-document was not seen")
	}
	if err := tools.Foreground(strings.TrimSuffix(long, "nohup x") + "ls"); err != nil {
		t.Error(err)
	}
}

func FuzzForeground(f *testing.F) {
	for _, seed := range []string{"a && b &", "cat <<E\nx\nE\nsleep 5 &", "$(nohup x)", "[[ a && b ]]", "case x in a) b;; esac", "${x:-$(y)}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		_ = tools.Foreground(command)
		_ = tools.ExitMeaning(command, 1)
	})
}

func BenchmarkForeground(b *testing.B) {
	const command = "cd /tmp && FOO=1 ls -la | grep 'x y' | head -n 3; for i in 1 2 3; do echo \"$i $(date)\"; done > out.txt 2>&1"
	b.ReportAllocs()
	for b.Loop() {
		if err := tools.Foreground(command); err != nil {
			b.Fatal(err)
		}
	}
}
