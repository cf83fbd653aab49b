package tools_test

import (
	"strings"
	"testing"
)

// TestSimpleCommands holds that commands which only run programs leave the shell's state as it is.
func TestSimpleCommands(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.wantOutput("echo hello > f.txt", "")
		e.wantOutput("cat f.txt", "hello")
		e.wantOutput("cat nothing <missing", "bash: line 1: missing: No such file or directory")
		e.wantOutput("echo [$OLDPWD$__trajgen_dir]; env | grep -c trajgen_ || true", "[]\n0")
		if code := e.ok("terminal", args{"command": "grep x f.txt"})["exit_code"]; code != 1.0 {
			t.Errorf("grep ended with %v, want 1", code)
		}
		e.wantOutput("cat f.txt | wc -l; echo é", "1\né")
		e.wantOutput("cat <<E\n"+strings.Repeat("ü", 600)+"\nE", strings.Repeat("ü", 600))

		e.wantOutput("echo a\x01b\x7fc | od -An -c", "   a 001   b 177   c  \\n")

		e.wantOutput("mkdir a; cd a", "")
		e.wantOutput("mv ../a ../b", "")
		e.wantOutput("pwd", e.box.Layout().Workdir+"/b")
		e.wantOutput("rm -r ../b", "")
		e.wantOutput("pwd", e.box.Layout().Workdir)

		e.fails("not_found", "terminal", args{"command": "ls", "workdir": "nowhere"})
		e.wantOutput("echo() { export SAID=$1; }", "")
		e.wantOutput("echo yes", "")
		e.wantOutput("builtin echo $SAID; unset -f echo", "yes")
		e.wantOutput("export PATH=/nowhere", "")
		e.wantOutput("cat f.txt", "bash: line 1: cat: command not found")
		e.wantOutput("nosuch", "bash: line 1: nosuch: command not found")
	})
}

// TestFunctionsOfTheEnvironment holds that a function that the sandbox's environment brings is run instead of a program.
func TestFunctionsOfTheEnvironment(t *testing.T) {
	e := openEnv(t, "local", map[string]string{"BASH_ENV": "env.sh"})
	e.write(e.box.Layout().Tmp+"/env.sh", "module() { export LOADED=$1; }")
	e.wantOutput("echo $LOADED", "")
	e.wantOutput("module gcc", "")
	e.wantOutput("echo $LOADED", "gcc")
	e.write(e.box.Layout().Tmp+"/env.sh", "cat() { echo \"my $1\"; }")
	e.wantOutput("cat f", "my f")
}

// TestDirectCommands holds that programs that need no shell find and do what they would in one.
func TestDirectCommands(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		workdir := e.box.Layout().Workdir
		e.ok("write_file", args{"path": "d/f x", "content": "hello\n"})
		e.wantOutput("cat 'd/f x'", "hello")
		e.wantOutput("cat nothing", "cat: nothing: No such file or directory")
		e.wantOutput("xxd-of-nobody 'd/f x'", "bash: line 1: xxd-of-nobody: command not found")
		if result := e.ok("terminal", args{"command": "grep x 'd/f x'"}); result["exit_code"] != 1.0 || result["exit_code_meaning"] != "no match (not an error)" {
			t.Errorf("grep: %v", result)
		}
		if got := e.ok("terminal", args{"command": "ls", "workdir": workdir + "/d"})["output"]; got != "f x" {
			t.Errorf("ls = %q", got)
		}
		e.fails("not_found", "terminal", args{"command": "ls", "workdir": workdir + "/nowhere"})
		e.fails("timeout", "terminal", args{"command": "tail -f 'd/f x'", "timeout": 1})

		e.wantOutput("cd d", "")
		e.wantOutput("ls", "f x")
		e.wantOutput("rm -r ../d", "")
		e.wantOutput("ls", "")
		e.wantOutput("touch here; export BLOCK_SIZE=1 GREP_COLORS=x", "")
		e.wantOutput("ls here", "here")
		e.wantOutput("ls() { echo mine; }; export -f ls", "")
		e.wantOutput("ls here", "mine")
	})
}
