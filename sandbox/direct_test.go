package sandbox_test

import (
	"slices"
	"testing"

	"trajgen/sandbox"
)

func TestDirect(t *testing.T) {
	plain := sandbox.Layout{Plain: true}
	for line, want := range map[string][]string{
		"cat f.txt":                        {"cat", "f.txt"},
		"  grep\t-q  'a b' f\n":            {"grep", "-q", "a b", "f"},
		`grep "a|b*" a'b'"c"d.txt`:         {"grep", "a|b*", "abcd.txt"},
		"pytest -q tests/test_a.py::x":     {"pytest", "-q", "tests/test_a.py::x"},
		"sed -n 1,40p ''":                  {"sed", "-n", "1,40p", ""},
		"dd if=a of=b":                     {"dd", "if=a", "of=b"},
		"python3 -c 'import os\nprint(1)'": {"python3", "-c", "import os\nprint(1)"},
		"grep 'ü~$x`\\' f":                 {"grep", "ü~$x`\\", "f"},
		"g++ -c a.cc":                      {"g++", "-c", "a.cc"},
	} {
		if got, ok := plain.Direct(line, nil); !ok || !slices.Equal(got, want) {
			t.Errorf("Direct(%q) = %q, %v, want %q", line, got, ok, want)
		}
	}
	for _, line := range []string{
		"", " ", "\n", "ls\nls", "ls;", "ls&", "ls|wc", "ls>f", "ls <f", "$x", "cat $x", "cat \"$x\"", "cat `x`", "cat \"`x`\"", "cat a\\ b", "cat \"a\\b\"", "cat *", "cat ?", "cat [a]",
		"cat ~", "cat ~/f", "cat a{b,c}", "A=1", "A=1 ls", "A+=1 ls", "! ls", "(ls)", "{ ls; }", "cat #x", "cat 'a", `cat "a`, "cat a(b)", "cat é", "./run", "/bin/cat f",
		"echo x", "cd d", "test -e f", "[ -e f ]", "time ls", "exec ls", ". f", ": x", "true", "if", "kill 1", "printf x", "cat 'a\x00'", "cat a\rb", "cat a\vb", "-x", "cat ^a", "type cat",
	} {
		if got, ok := plain.Direct(line, nil); ok {
			t.Errorf("Direct(%q) = %q, want that it needs a shell", line, got)
		}
	}
	for env, want := range map[string]bool{
		"A=1": true, "PATH=/bin": true, "HOME=~": true, "LD_PRELOAD=x.so": true,
		"BASH_ENV=f": false, "BASH_FUNC_cat%%=() { x; }": false, "SHELLOPTS=noexec": false, "BASHOPTS=x": false, "EXECIGNORE=/bin/*": false, "PATH=~/bin:/bin": false,
	} {
		if _, ok := plain.Direct("cat f", []string{"B=2", env}); ok != want {
			t.Errorf("with %s, Direct = %v, want %v", env, ok, want)
		}
	}
	if _, ok := (sandbox.Layout{}).Direct("cat f", nil); ok {
		t.Error("Direct = true for a sandbox of whose environment nothing is known")
	}
}
