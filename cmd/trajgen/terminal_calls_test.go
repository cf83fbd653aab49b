package main

import (
	"encoding/json"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// TestTerminalCalls plays calls of terminal, process and execute_code in one sandbox, as users script them.
func TestTerminalCalls(t *testing.T) {
	t.Parallel()
	type args = map[string]any
	tests := []struct {
		name      string
		arguments any
		status    episode.CallStatus
		want      string // the result, or what it contains when it begins with "..."
	}{
		{"terminal", args{"command": "mkdir -p d; cd d; export A='1 2'; f() { echo f$1; }; alias say=echo"}, "ok", `{"output":"","exit_code":0,"error":null}`},
		{"terminal", `{"command":"basename $PWD; echo $A; f x; say y; exit 3"}`, "ok", `{"output":"d\n1 2\nfx\ny","exit_code":3,"error":null}`},
		{"terminal", args{"command": ""}, "ok", `{"output":"","exit_code":0,"error":null}`},
		{"terminal", args{"command": nil}, "invalid_arguments", "...command: expected string"},
		{"terminal", args{"command": "true", "timeout": 601}, "error", "...over the limit of 600 s for a foreground command; start it with background=true"},
		{"terminal", args{"command": "sleep 9 &"}, "error", "...Start it with background=true"},
		{"terminal", args{"command": "nohup ls"}, "error", `..."exit_code":-1,"output":""`},
		{"terminal", args{"command": "echo 'nohup a & b' \"c & d\""}, "ok", `{"output":"nohup a & b c & d","exit_code":0,"error":null}`},
		{"terminal", args{"command": "grep x /dev/null | cat | grep 'a | b'"}, "ok", `{"output":"","exit_code":1,"error":null,"exit_code_meaning":"no match (not an error)"}`},
		{"terminal", args{"command": "echo begun; sleep 30", "timeout": "1"}, "timeout", `..."exit_code":124,"output":"begun\n[Command timed out after 1s]"`},
		{"terminal", args{"command": "test -t 1 && stty size", "pty": true}, "ok", `{"output":"24 80","exit_code":0,"error":null}`},
		{"terminal", args{"command": "pwd", "workdir": "nosuch"}, "error", "...nothing was run"},
		{"terminal", args{"command": "env | grep -c hunter2"}, "ok", `..."output":"0"`},
		{"terminal", args{"command": "read line; echo got $line", "background": true, "watch_patterns": []string{"got"}}, "ok", `..."session_id":"proc_1"`},
		{"process", args{"action": "submit", "session_id": "proc_1", "data": "it"}, "ok", `..."status":"ok","bytes_written":3`},
		{"process", args{"action": "wait", "session_id": "proc_1", "timeout": 30}, "ok", `..."pattern":"got","line":"got it"`},
		{"process", args{"action": "wait", "session_id": "proc_1", "timeout": 500}, "ok", `..."status":"exited","exit_code":0,"output":"got it","timeout_note"`},
		{"process", args{"action": "kill", "session_id": "proc_1"}, "ok", `..."status":"already_exited"`},
		{"process", args{"action": "poll", "session_id": "proc_2"}, "error", `..."status":"not_found"`},
		{"process", args{"action": "stop"}, "invalid_arguments", "...list"},
		{"execute_code", args{"code": "  "}, "error", `{"error":"No code provided."}`},
		{"execute_code", args{"code": "import os\nprint([v for v in os.environ.values() if 'hunter2' in v], os.path.basename(os.getcwd()))"}, "ok", `{"status":"success","output":"[] d","tool_calls_made":0}`},
		{"execute_code", args{"code": "print('x' * 200_000)"}, "ok", "...150,069 bytes omitted out of 200,001"},
		{"execute_code", args{"code": "print(1)\nraise SystemExit('no')"}, "error", `{"error":"no","output":"1","status":"error","tool_calls_made":0}`},
		{"execute_code", args{"code": "from trajgen_tools import terminal\nfor i in range(51): last = terminal('echo %d' % i)\nprint(last)"}, "ok", `{"status":"success","output":"{'error': 'Tool call limit reached (50). No more tool calls allowed in this execution.'}","tool_calls_made":50}`},
		{"execute_code", args{"code": "import trajgen_tools\ntrajgen_tools.web_search"}, "error", "...web_search is not available in this episode"},
	}
	var script strings.Builder
	for _, tt := range tests {
		line, err := json.Marshal(map[string]any{"name": tt.name, "arguments": tt.arguments})
		if err != nil {
			t.Fatal(err)
		}
		script.Write(append(line, '\n'))
	}
	file := write(t, "calls.jsonl", script.String())
	for _, backend := range []string{"native", "local"} {
		t.Run(backend, func(t *testing.T) {
			out := succeed(t, "tools", "call", "--script", file, "--sandbox", backend,
				"--toolsets", "terminal,file,code_execution", "--env", "SECRET=hunter2").out
			results := lines[resultLine](t, out)
			if len(results) != len(tests) {
				t.Fatalf("got %d results, want %d", len(results), len(tests))
			}
			for i, tt := range tests {
				got := results[i]
				part, some := strings.CutPrefix(tt.want, "...")
				if got.Status != tt.status || !some && got.Result != tt.want || !strings.Contains(got.Result, part) {
					t.Errorf("call %d, %s %v: got %s %.300s, want %s %s", i, tt.name, tt.arguments, got.Status, got.Result, tt.status, tt.want)
				}
			}
		})
	}
}
