package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/tools"
)

func TestTerminal(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		call := e.call("terminal", args{"command": "echo out; echo err >&2; exit 3"})
		if want := `{"output":"out\nerr","exit_code":3,"error":null}`; call.Result != want || call.Status != episode.CallOK {
			t.Errorf("got %s %s, want %s", call.Status, call.Result, want)
		}
		for command, want := range map[string]string{
			"":                              "",
			"printf '  lead\\n\\n'":         "  lead",
			"printf '\\033[31mred\\033[0m'": "red",
			"printf 'a\\xffb'":              "a\uFFFDb",
			"cat":                           "",
			"[ -e /dev/fd/3 ] && echo open": "",
			"python3 -c 'import os; print(os.path.exists(\"/proc/self/fd/3\") and os.readlink(\"/proc/self/fd/3\").startswith(\"socket\"))'": "False",
			"for i in 1 2; do\n  echo $i\ndone": "1\n2",
			"cat <<'E'\nnohup x &\nE":           "nohup x &",
			"echo $0 $# $1":                     "bash 0",
			"pgrep -f 'pgrep_me_xyz' | wc -l":   "",
		} {
			if strings.HasPrefix(command, "pgrep") {
				continue // procps is not everywhere
			}
			e.wantOutput(command, want)
		}
		r := e.ok("terminal", args{"command": "grep nothing /dev/null"})
		wantContains(t, r["exit_code_meaning"], "no match")
		e.wantOutput("nosuchcommand", "bash: line 1: nosuchcommand: command not found")
		wantContains(t, e.ok("terminal", args{"command": "echo $(("})["output"], "bash:")
	})
}

// TestExitCodes holds that the trace knows how a command or a script ended, once, and where none did.
func TestExitCodes(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		want := func(want string, name string, arguments args) {
			t.Helper()
			call := e.call(name, arguments)
			got := "none"
			if call.ExitCode != nil {
				got = fmt.Sprint(*call.ExitCode)
			}
			if got != want {
				t.Errorf("%s %v: exit code %s, want %s: %s", name, arguments, got, want, call.Result)
			}
		}
		want("0", "terminal", args{"command": "true"})
		want("3", "terminal", args{"command": "exit 3"})
		want("127", "terminal", args{"command": "nosuchcommand"})
		want("none", "terminal", args{"command": "true", "workdir": "nosuch"})
		want("none", "terminal", args{"command": "sleep 60", "timeout": 1})
		want("0", "execute_code", args{"code": "print(1)"})
		want("4", "execute_code", args{"code": "raise SystemExit(4)"})
		want("none", "write_file", args{"path": "a", "content": "x"})
		want("none", "terminal", args{"command": "exit 5", "background": true})
		want("5", "process", args{"action": "wait", "session_id": "proc_1"})
		want("none", "process", args{"action": "poll", "session_id": "proc_1"})
	})
}

func TestTerminalState(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		workdir := e.box.Layout().Workdir
		e.wantOutput("mkdir -p sub/deep; cd sub; export A=$'x\\n\"y\"' B=1; C=plain", "")
		e.wantOutput(`pwd; echo "$A|$B|$C"`, workdir+"/sub\nx\n\"y\"|1|")
		e.wantOutput("cd deep; exit 4", "")
		e.wantOutput("pwd; unset B; unset HOME", workdir+"/sub/deep")
		e.wantOutput(`echo "${B-none} ${HOME-none}"; cd -`, "none none\n"+workdir+"/sub")
		e.wantOutput("set -e; cd ..; false; echo no", "")
		e.wantOutput("pwd; set -x; cd sub; true", workdir+"\n++ cd sub\n++ true")
		e.wantOutput("pwd; trap 'echo bye' EXIT; cd deep", workdir+"/sub\nbye")
		e.wantOutput("pwd; exec 3>f; echo into >&3; cd ..; exit 2", workdir+"/sub/deep")
		e.wantOutput("pwd; cat deep/f; cd deep; exec true", workdir+"/sub\ninto")
		e.wantOutput("pwd", workdir+"/sub") // a shell that became something else reports nothing

		e.fails("not_found", "terminal", args{"command": "pwd", "workdir": "-"}) // no directory of that name
		r := e.ok("terminal", args{"command": "pwd; cd /", "workdir": "deep"})
		if r["output"] != workdir+"/sub/deep" {
			t.Errorf("workdir: got %q", r["output"])
		}
		e.fails("not_found", "terminal", args{"command": "touch ran", "workdir": "nosuch"})
		e.wantOutput("pwd; ls; rm -r ../sub", workdir+"/sub\ndeep")
		e.wantOutput("pwd", workdir)
	})
}

func TestTerminalLimits(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		r := e.ok("terminal", args{"command": "head -c 120000 /dev/zero | tr '\\0' x"})
		output := r["output"].(string)
		const note = "\n\n... [output truncated: 70,067 chars omitted out of 120,000] ...\n\n"
		if want := strings.Repeat("x", 19_973) + note + strings.Repeat("x", 29_960); output != want {
			t.Errorf("kept %d characters (%d x), want %d with the note", len(output), strings.Count(output, "x"), len(want))
		}
		if r := e.ok("terminal", args{"command": "head -c 50000 /dev/zero | tr '\\0' x; echo; echo"}); len(r["output"].(string)) != 50_000 {
			t.Errorf("output of the very limit was cut to %d characters", len(r["output"].(string)))
		}
		call := e.call("terminal", args{"command": "echo early; sleep 100 & sleep 100; wait", "timeout": 1})
		if call.ErrorClass != "background_required" {
			t.Errorf("got class %s: %s", call.ErrorClass, call.Result)
		}
		call = e.call("terminal", args{"command": "echo early; (sleep 100)", "timeout": 1})
		if want := `"exit_code":124,"output":"early\n[Command timed out after 1s]"`; call.Status != episode.CallTimeout ||
			!strings.Contains(call.Result, want) {
			t.Errorf("got %s %s, want timeout and %s", call.Status, call.Result, want)
		}
		e.fails("timeout_too_long", "terminal", args{"command": "true", "timeout": 601})
		e.fails("invalid_command", "terminal", args{"command": "echo a\x00b"})
		long := "x='" + strings.Repeat("y", 300_000) + "'; echo ${#x}"
		e.wantOutput(long, "300000")
		e.fails("output_flood", "terminal", args{"command": "yes"})
	})
}

func TestTerminalMachineLimits(t *testing.T) {
	e := open(t, "native", "all")
	r := e.ok("terminal", args{"command": `python3 -c 'import subprocess as s
for i in range(300): s.Popen(["sleep", "9"], stdout=s.DEVNULL, stderr=s.DEVNULL)' 2>/dev/null`})
	wantContains(t, r["exit_code_meaning"], "limit of processes")
	if err := e.box.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := e.ok("terminal", args{"command": "exit 5"}); r["exit_code_meaning"] != nil {
		t.Errorf("an innocent command: got %v", r["exit_code_meaning"])
	}
}

func TestProcess(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		call := e.call("terminal", args{"command": "while read line; do echo got $line; done; exit 5", "background": true})
		if want := `{"output":"Background process started","session_id":"proc_1","exit_code":0,"error":null}`; call.Result != want {
			t.Fatalf("got %s, want %s", call.Result, want)
		}
		e.ok("process", args{"action": "write", "session_id": "proc_1", "data": "a\nb"})
		e.ok("process", args{"action": "submit", "session_id": "proc_1", "data": "c"})
		if r := e.ok("process", args{"action": "poll", "session_id": "proc_1"}); r["status"] != "running" {
			t.Errorf("poll: %v", r)
		}
		e.ok("process", args{"action": "close", "session_id": "proc_1"})
		got := e.call("process", args{"action": "wait", "session_id": "proc_1", "timeout": 9999}).Result
		want := `{"session_id":"proc_1","status":"exited","exit_code":5,"output":"got a\ngot bc",` +
			`"timeout_note":"waited for at most 180 s instead of the 9999 s that were asked for"}`
		if got != want {
			t.Errorf("wait: got %s, want %s", got, want)
		}
		got = e.call("process", args{"action": "log", "session_id": "proc_1", "offset": 2, "limit": 1}).Result
		if want := `{"session_id":"proc_1","status":"exited","exit_code":5,"output":"got bc","total_lines":2,"showing":"lines 2-2 of 2"}`; got != want {
			t.Errorf("log: got %s, want %s", got, want)
		}
		e.fails("exited", "process", args{"action": "write", "session_id": "proc_1", "data": "x"})
		e.fails("not_found", "process", args{"action": "poll", "session_id": "proc_9"})
		e.fails("not_found", "terminal", args{"command": "true", "background": true, "workdir": "nosuch"})

		e.ok("terminal", args{"command": "mkdir d; cd d; export V=7"})
		e.ok("terminal", args{"command": "echo $V; pwd; sleep 100", "background": true})
		for range 200 {
			if r := e.ok("process", args{"action": "poll", "session_id": "proc_2"}); strings.Contains(r["output_preview"].(string), "/d") {
				wantContains(t, r["output_preview"], "7\n"+e.box.Layout().Workdir+"/d")
				break
			}
		}
		if r := e.ok("process", args{"action": "wait", "session_id": "proc_2", "timeout": 1}); r["status"] != "timeout" {
			t.Errorf("wait: %v", r)
		}
		if r := e.ok("process", args{"action": "kill", "session_id": "proc_2"}); r["status"] != "killed" || r["exit_code"] != 143.0 {
			t.Errorf("kill: %v", r)
		}
		if r := e.ok("process", args{"action": "kill", "session_id": "proc_2"}); r["status"] != "already_exited" {
			t.Errorf("kill again: %v", r)
		}
		if list := e.ok("process", args{"action": "list"})["processes"].([]any); len(list) != 2 {
			t.Errorf("list: %v", list)
		}
	})
}

func TestForeground(t *testing.T) {
	allowed := []string{
		"a && b", "a 2>&1", "a &> log", "a &>> log", "a >& log", "a |& b", "echo 'x & y'", `echo "x & y"`, `echo x \& y`,
		"cat <<EOF\nsleep 1 &\nEOF\necho done", "cat <<-'E'\n\tnohup x &\n\tE", "echo $((a & b))", "((x = a & b)); echo", "# a &\nb",
		"case x in a) echo;;& b) echo;& esac", "echo nohup", "grep uvicorn log", "which gunicorn", "timeout 5 python3 -m http.server",
		"npm run build", "vite build", "uvicorn --help", "python3 -m json.tool x", "awk '{print $1 & 2}' f", "curl 'http://x/?a=1&b=2'",
		"docker compose up -d", "echo $'it\\'s & that'", "x=$(cat <<'E'\na & b\nE\n)", `python3 -c "
import os  # a & b
print(1 & 2)"`, "cmd <&0", "exec 3<&-", "diff <(a) <(b)", "echo \"$(echo 'a & b')\"",
	}
	for _, command := range allowed {
		if err := tools.Foreground(command); err != nil {
			t.Errorf("%q refused: %v", command, err)
		}
	}
	refused := []string{
		"sleep 100 &", "sleep 100 & echo x", "(sleep 100 &)", "a && b &", "nohup x", "cd d; nohup x", "FOO=1 nohup x", "disown", "setsid x",
		"python3 -m http.server 8000", "cd web && python -m http.server", "npm run dev", "npm start", "uvicorn app:app", "vite",
		"docker compose up", "python manage.py runserver", "echo $(sleep 1 &)", "flask --app x run", "curl http://x/?a=1&b=2",
		"if true; then nohup x; fi", "cat <<E\nx\nE\nsleep 5 &",
	}
	for _, command := range refused {
		if tools.Foreground(command) == nil {
			t.Errorf("%q allowed", command)
		}
	}
}
