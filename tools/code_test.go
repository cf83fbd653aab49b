package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// TestCodeWithoutTool imports a tool that the episode does not have.
func TestCodeWithoutTool(t *testing.T) {
	e := open(t, "local", "file", "code_execution")
	call := e.call("execute_code", args{"code": "from trajgen_tools import web_search"})
	wantContains(t, call.Result, "ImportError: web_search is not available in this episode; trajgen_tools has read_file")
}

func TestExecuteCode(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		e.write("mine.py", "X = 5\n")
		run := func(code string) string { return e.call("execute_code", args{"code": code}).Result }
		if got, want := run("import mine\nprint(mine.X)"), `{"status":"success","output":"5","tool_calls_made":0}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		call := e.call("execute_code", args{"code": "import sys\nprint('a'); print('b', file=sys.stderr); sys.exit(3)"})
		if want := `{"error":"b","output":"a","status":"error","tool_calls_made":0}`; call.Result != want {
			t.Errorf("got %s, want %s", call.Result, want)
		}
		if call.Status != episode.CallError || call.ErrorClass != "script_failed" || call.ExitCode == nil || *call.ExitCode != 3 {
			t.Errorf("a script that failed is %s, class %q, exit code %v", call.Status, call.ErrorClass, call.ExitCode)
		}
		wantContains(t, run("raise SystemExit(2)"), `"error":"Script exited with code 2"`)
		wantContains(t, run("1/0"), `/execute_code_4/script.py\", line 1, in <module>`)
		got := run(`from trajgen_tools import *
print(write_file("d/x.txt", "hello\n")["bytes_written"])
print(read_file("d/x.txt")["content"])
print(terminal("cat d/x.txt; exit 4"))
print(patch("d/x.txt", "hello", "bye")["success"], search_files("bye")["total_count"])
print("error" in read_file("nosuch"), json_parse('{"a": "x\ty"}'), shell_quote("a b"))
print(retry(lambda: 1))`)
		want := `{"status":"success","output":"6\n1|hello\n{'output': 'hello', 'exit_code': 4, 'error': None}\nTrue 1\n` +
			`True {'a': 'x\\ty'} 'a b'\n1","tool_calls_made":6}`
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		wantContains(t, run("from trajgen_tools import terminal\nterminal('true', background=True)"), "TypeError")
		r := e.ok("execute_code", args{"code": "from trajgen_tools import terminal\nfor i in range(52): r = terminal('true')\nprint(r)"})
		if r["tool_calls_made"] != 50.0 {
			t.Errorf("calls: %v", r)
		}
		wantContains(t, r["output"], "Tool call limit reached (50). No more tool calls allowed in this execution.")
		r = e.ok("execute_code", args{"code": "print('x' * 200000)"})
		output := r["output"].(string)
		wantContains(t, strings.Trim(output, "x"), "150,069 bytes omitted out of 200,001")
		if len(output) != 49_999 { // the newline at the end is trimmed
			t.Errorf("kept %d bytes with the note", len(output))
		}
		r = decode(t, run("import sys\nprint('é' * 30000)\nsys.exit('é' * 30000)"))
		for name, limit := range map[string]int{"output": 50_000, "error": 10_000} {
			if n := len(r[name].(string)); n > limit || n < limit-8 {
				t.Errorf("%s has %d bytes, want just below %d", name, n, limit)
			}
		}
		e.wantOutput("ls -A; ls -A $TMPDIR", "__pycache__\nd\nmine.py"[len("__pycache__\n"):])
		e.fails("no_code", "execute_code", args{"code": " \n"})
	})
}

func TestExecuteCodeHostile(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		code := `import os, socket
s = socket.socket(fileno=3)
f = s.makefile("rwb")
for line in [b'garbage', b'{"tool": "execute_code", "args": {}}', b'{"tool": "terminal", "args": {"command": "sleep 9", "background": "true"}}',
             b'{"tool": "terminal"}', b'{"tool": "terminal", "args": [1]}', b'null']:
    f.write(line + b"\n"); f.flush()
    print(f.readline().decode().strip()[:75])
os.close(3)
`
		r := e.ok("execute_code", args{"code": code})
		want := `{"error":"the call is not a JSON object"}
{"error":"Tool \"execute_code\" is not available in execute_code. Available
{"error":"background is not available in execute_code; call the terminal to
{"error":"invalid arguments for terminal: command: expected string, got not
{"error":"invalid arguments for terminal: `
		if got := fmt.Sprint(r["output"]); !strings.HasPrefix(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestExecuteCodeTraced(t *testing.T) {
	e := open(t, "local", "all")
	e.ok("execute_code", args{"code": "from trajgen_tools import terminal\nterminal('echo 1')\nterminal('cd nosuch')"})
	var got []string
	for _, call := range e.session.Trace() {
		got = append(got, fmt.Sprintf("%s %s<%s %d %s", call.Name, call.ID, call.Parent, call.Index, call.Status))
	}
	want := "execute_code call_1< 0 ok; terminal call_1.1<call_1 0 ok; terminal call_1.2<call_1 1 ok"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// TestExecuteCodeWithoutTools holds that an episode without any of the script tools gives scripts none.
func TestExecuteCodeWithoutTools(t *testing.T) {
	e := open(t, "local", "code_execution", "todo")
	r := e.fails("script_failed", "execute_code", args{"code": "import trajgen_tools\nprint(trajgen_tools.__all__)\nfrom trajgen_tools import terminal"})
	wantContains(t, r["output"], "['json_parse', 'shell_quote', 'retry']")
	wantContains(t, r["error"], "terminal is not available in this episode; trajgen_tools has no tools")
	for _, schema := range e.session.Toolset().Schemas() {
		if strings.Contains(string(schema), "terminal(") || strings.Contains(string(schema), "trajgen_tools") {
			t.Errorf("the description offers tools that the episode has not: %s", schema)
		}
	}
}
