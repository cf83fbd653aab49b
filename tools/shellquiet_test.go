package tools_test

import (
	"strings"
	"testing"

	"trajgen/tools"
)

func TestQuiet(t *testing.T) {
	quiet := []string{
		"ls", "echo hello > f.txt", "cat f | grep -c x && wc -l <f", "./run.sh -x \"$HOME\"/*", "FOO=1 BAR=$x make -j4", "! grep x f 2>&1",
		"(cd d && export A=1)", "echo $(cd d; x=1)", "{ ls; pwd; }", "printf '%s' -v", "cat <<E\n$x\nE", "diff <(sort a) <(sort b)", ">f", "git status || true",
		"python3 - <<'E'\nx = $((1))\nE",
	}
	for _, command := range quiet {
		if _, ok := tools.Quiet(command); !ok {
			t.Errorf("Quiet(%q) = false", command)
		}
	}
	loud := []string{
		"cd d", "export A=1", "A=1", "A+=(x) ls", "A[1]=x ls", "FOO=1 echo x", "declare x=1", "f() { :; }", "alias a=b", "set -x", "shopt -s extglob", ". f", "source f",
		"eval x", "exec ls", "exec 3>f", "ls && cd d", "{ ls; cd d; }", "ls | read x", "echo ${x:=1}", "echo ${x=1}", "echo ${a[x=1]}", "echo $((x=1))",
		"echo \"${x:=1}\"", "cat <<E\n${x:=1}\nE", "ls >${x:=f}", "ls {fd}>f", "printf -v x y", "printf \"$x\" y", "printf '-'v x y", "$x", "\\cd d", "'cd' d", "\"c\"d d", "c{d,} x",
		"command cd d", "builtin cd d", "trap x EXIT", "for PATH in a; do ls; done", "if ls; then ls; fi", "while read x; do ls; done", "case x in x) ls;; esac",
		"((x=1))", "let x=1", "time ls", "coproc ls", "ls &", "pushd d", "umask 0", "ulimit -n 9", "kill $$", "exit 3", "unset x", "[ -e f ]", "test -e f", "[[ -e f ]]",
		"ls |& read x", "enable -n echo", "hash -p /bin/cat ls", "ls '", "if", "", "-x", "ls # x\ncd d", "ls\\\n; cd d", "echo `ls`; cd", strings.Repeat("ls;", 10_000), strings.Repeat("(", 5000),
	}
	for _, command := range loud {
		if _, ok := tools.Quiet(command); ok && command != "" {
			t.Errorf("Quiet(%q) = true", command)
		}
	}
	if programs, _ := tools.Quiet("b; ./a | b && echo c; (d)"); strings.Join(programs, " ") != "./a b echo" {
		t.Errorf("programs are %q", programs)
	}
}

// TestQuietCommands holds that commands of which nobody asks for a report are run as all others are.
func TestQuietCommands(t *testing.T) {
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

// TestQuietWithFunctions holds that a function that the sandbox's environment brings is none of the quiet programs.
func TestQuietWithFunctions(t *testing.T) {
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
