package tools_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools"
)

// left lists what scripts have left in the temporary directory.
func (e *episodeOf) left() string {
	e.t.Helper()
	return fmt.Sprint(e.ok("terminal", args{"command": "ls -A $TMPDIR | grep execute_code"})["output"])
}

// TestExecuteCodeTimeout holds that SIGTERM comes first, that SIGKILL follows, for all that the script started, and
// that nothing of it is left.
func TestExecuteCodeTimeout(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		tools.SetCodeTimes(t, time.Second, time.Second)
		call := e.call("execute_code", args{"code": `
import signal, subprocess, sys, time
def asked(*_): print("asked to end", flush=True)
signal.signal(signal.SIGTERM, asked)
subprocess.Popen([sys.executable, "-c", """
import os, signal, time
os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    open("alive", "a").write("x"); time.sleep(0.05)
"""])
print("begun", flush=True)
while True: time.sleep(1)`})
		if call.Status != episode.CallTimeout {
			t.Fatalf("got %s: %s", call.Status, call.Result)
		}
		want := `{"error":"the script did not end within 1s and was killed","output":"begun\nasked to end","status":"timeout","tool_calls_made":0}`
		if call.Result != want {
			t.Errorf("got %s, want %s", call.Result, want)
		}
		if call.Elapsed < 2*time.Second {
			t.Errorf("no grace: it took %s", call.Elapsed)
		}
		size := func() string {
			return fmt.Sprint(e.ok("terminal", args{"command": "wc -c < alive; sleep 0.3"})["output"])
		}
		if first, second := size(), size(); first != second {
			t.Errorf("what the script started goes on")
		}
		if left := e.left(); left != "" {
			t.Errorf("left %s", left)
		}

		// One that ends when asked costs no grace, and a call that it waits for ends with it.
		call = e.call("execute_code", args{"code": "from trajgen_tools import terminal\nterminal('sleep 60; touch late')"})
		if call.Status != episode.CallTimeout || call.Elapsed > 6*time.Second {
			t.Errorf("after %s: %s %s", call.Elapsed, call.Status, call.Result)
		}
		trace := e.session.Trace()
		for _, each := range trace {
			if each.Parent == call.ID && each.ErrorClass != "interrupted" {
				t.Errorf("the nested call: %s %s", each.Status, each.Result)
			}
		}
	})
}

func TestExecuteCodeInterrupted(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.ok("terminal", args{"command": "true"})
		for name, arguments := range map[string]string{
			"execute_code": `{"code":"import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('begun', flush=True)\nopen('ready', 'w')\ntime.sleep(60)"}`,
			"terminal":     `{"command":"trap '' TERM; echo begun; touch ready; sleep 60"}`,
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				for range 200 {
					if _, err := e.box.Files().Stat(t.Context(), "ready"); err == nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				cancel(fmt.Errorf("enough of it"))
			})
			call := e.session.Call(ctx, registry.Request{ID: "stop_" + name, Name: name, Arguments: arguments})
			all.Wait()
			if call.ErrorClass != "interrupted" || call.Elapsed > 10*time.Second {
				t.Errorf("%s after %s: %s", name, call.Elapsed, call.Result)
			}
			wantContains(t, call.Result, "was interrupted: enough of it")
			wantContains(t, call.Result, `"output":"begun`)
			e.ok("terminal", args{"command": "rm ready"})
		}
		if left := e.left(); left != "" {
			t.Errorf("left %s", left)
		}
	})
}

// TestExecuteCodeEnvironment holds that scripts see of the terminal's variables what they need and no more.
func TestExecuteCodeEnvironment(t *testing.T) {
	t.Setenv("RUNNER_ONLY", "1")
	t.Setenv("OPENAI_API_KEY", "sk-runner")
	each(t, func(t *testing.T, e *episodeOf) {
		e.ok("terminal", args{"command": `export LC_TIME=C XDG_DATA_HOME='/x "$y" ' XDG_SESSION_TOKEN=s PYTHONPATH=/lib/mine
export OPENAI_API_KEY=sk-mine DATABASE_URL=x HTTP_PROXY=x LD_PRELOAD= MONKEY=1 LC_AUTH=x
mkdir -p venv/bin sub; printf '#!/bin/sh\necho in the venv; exec /usr/bin/env -u VIRTUAL_ENV PATH="${PATH#*:}" python3 "$@"\n' > venv/bin/python3
chmod +x venv/bin/python3; cd sub; echo 'X = 1' > here.py`})
		r := e.ok("execute_code", args{"code": `
import os, here
for name in sorted(os.environ):
    if name not in ("PATH", "PWD", "OLDPWD", "HOME", "LANG", "TERM", "TZ", "TMPDIR", "SHLVL", "_", "LC_CTYPE", "GORACE", "TRAJGEN_SANDBOX", "USER", "LOGNAME", "SHELL"):
        print(name, os.environ[name] if name != "PYTHONPATH" else os.environ[name].split(":")[2:])
print(os.path.basename(os.getcwd()))`})
		want := `PYTHONDONTWRITEBYTECODE 1
PYTHONIOENCODING utf-8
PYTHONPATH ['/lib/mine']
PYTHONUTF8 1
XDG_DATA_HOME /x "$y" 
sub`
		got := fmt.Sprint(r["output"])
		for _, name := range []string{"LC_TIME C\n"} {
			if !strings.Contains(got, name) {
				t.Errorf("no %s", name)
			}
			got = strings.Replace(got, name, "", 1)
		}
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		e.ok("terminal", args{"command": "export VIRTUAL_ENV=$(dirname $PWD)/venv"})
		wantContains(t, e.ok("execute_code", args{"code": "print('script')"})["output"], "in the venv\nscript")
		e.ok("terminal", args{"command": "unset VIRTUAL_ENV; rm -r ../sub"})
		wantContains(t, e.ok("execute_code", args{"code": "import os; print(os.getcwd())"})["output"], e.box.Layout().Workdir)
	})
}

func TestExecuteCodeSideBySide(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				code := fmt.Sprintf(`from trajgen_tools import terminal\nfor i in range(5):\n    print(terminal('echo %d.%%d' %% i)['output'])`, i)
				call := e.session.Call(t.Context(), registry.Request{
					ID: fmt.Sprintf("side_%d", i), Name: "execute_code", Arguments: `{"code":"` + code + `"}`,
				})
				want := fmt.Sprintf(`{"status":"success","output":"%[1]d.0\n%[1]d.1\n%[1]d.2\n%[1]d.3\n%[1]d.4","tool_calls_made":5}`, i)
				if call.Result != want {
					t.Errorf("got %s, want %s", call.Result, want)
				}
			})
		}
		all.Wait()
		for i, each := range e.session.Trace() {
			if each.Name == "terminal" && !strings.HasPrefix(each.ID, each.Parent+".") {
				t.Errorf("call %d: %s is a child of %s", i, each.ID, each.Parent)
			}
		}
	})
}

// TestExecuteCodeHugeCall is about a call that the runner stops reading: the script must not wait for it.
func TestExecuteCodeHugeCall(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		tools.SetCodeTimes(t, 20*time.Second, time.Second)
		r := e.ok("execute_code", args{"code": `from trajgen_tools import write_file, read_file
print(write_file("big", "x" * 30_000_000)["error"])
print(write_file("small", "x")["bytes_written"])`})
		wantContains(t, r["output"], "the call is larger than ")
		wantContains(t, r["output"], "\n1")
	})
}

// TestExecuteCodeOutsideOnly holds that scripts start nothing that outlives them through the terminal.
func TestExecuteCodeOutsideOnly(t *testing.T) {
	e := open(t, "local", "all")
	r := e.ok("execute_code", args{"code": `from trajgen_tools import _call
for name, value in {"background": True, "Background": "true", "is_background": True, "TTY": True, "notify_on_complete": "true", "watch_patterns": ["x"]}.items():
    print(_call("terminal", {"command": "true", name: value}))
s = __import__("trajgen_tools")._stream
s.write(b'{"tool": "terminal", "args": "{\\"command\\": \\"true\\", \\"background\\": true}"}\n'); s.flush()
print(s.readline().decode().strip())
print(_call("terminal", {"command": "true", "background": False, "watch_patterns": []}))`})
	lines := strings.Split(fmt.Sprint(r["output"]), "\n")
	for i, line := range lines[:len(lines)-1] {
		if !strings.Contains(line, "is not available in execute_code") {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if want := "{'output': '', 'exit_code': 0, 'error': None}"; lines[len(lines)-1] != want {
		t.Errorf("got %s, want %s", lines[len(lines)-1], want)
	}
	if r["tool_calls_made"] != 8.0 || len(lines) != 8 {
		t.Errorf("calls: %v", r["tool_calls_made"])
	}
}
