package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
)

// script makes calls in one sandbox and returns their results.
func script(t *testing.T, calls []string, args ...string) []resultLine {
	t.Helper()
	file := write(t, "calls.jsonl", strings.Join(calls, "\n"))
	got := succeed(t, append([]string{"tools", "call", "--script", file}, args...)...)
	results := lines[resultLine](t, got.out)
	if len(results) != len(calls) {
		t.Fatalf("%d results of %d calls: %s", len(results), len(calls), got.out)
	}
	return results
}

// TestEveryStatus holds how each end of a call is told. The exit code is 0: the calls were made.
func TestEveryStatus(t *testing.T) {
	tests := []struct {
		name   string
		give   string
		status episode.CallStatus
		want   string // in the result
	}{
		{"ok", `{"name":"terminal","arguments":{"command":"echo done"}}`, episode.CallOK, "done"},
		{"error", `{"name":"read_file","arguments":{"path":"none.txt"}}`, episode.CallError, "none.txt"},
		{"timeout", `{"name":"terminal","arguments":{"command":"sleep 60","timeout":1}}`, episode.CallTimeout, "1"},
		{"missing argument", `{"name":"read_file","arguments":{}}`, episode.CallInvalidArguments, "path"},
		{"no arguments", `{"name":"read_file"}`, episode.CallInvalidArguments, "path"},
		{"broken arguments", `{"name":"read_file","arguments":"path=a"}`, episode.CallInvalidArguments, "error"},
		{"a list", `{"name":"read_file","arguments":[1,2]}`, episode.CallInvalidArguments, "error"},
		{"unknown tool", `{"name":"frobnicate","arguments":{"path":"a"}}`, episode.CallUnknownTool, "read_file"},
		{"no name", `{"arguments":{"path":"a"}}`, episode.CallUnknownTool, "does not exist"},
		{"unavailable", `{"name":"x_search","arguments":{}}`, episode.CallUnavailable, "not available"},
	}
	var calls []string
	for _, tt := range tests {
		calls = append(calls, tt.give)
	}
	for i, got := range script(t, calls) {
		tt := tests[i]
		if got.Status != tt.status || !strings.Contains(got.Result, tt.want) || !json.Valid([]byte(got.Result)) {
			t.Errorf("%s: %s: %s, want %s and %q", tt.name, got.Status, got.Result, tt.status, tt.want)
		}
		if got.Status == episode.CallUnavailable && got.Toolset != "x_search" {
			t.Errorf("%s: toolset %q", tt.name, got.Toolset)
		}
		if (got.ErrorClass == "") != (got.Status == episode.CallOK) || got.DurationUS < 0 || got.SandboxUS > got.DurationUS {
			t.Errorf("%s: class %q, %d µs, %d µs of them in the sandbox", tt.name, got.ErrorClass, got.DurationUS, got.SandboxUS)
		}
	}
}

// TestDenied holds how a call is told that the command policy refused, in a sandbox that could have borne it.
func TestDenied(t *testing.T) {
	calls := []string{
		`{"name":"terminal","arguments":{"command":"rm -rf --no-preserve-root /"}}`,
		`{"name":"terminal","arguments":{"command":"echo alive"}}`,
	}
	got := script(t, calls, "--sandbox", "native", "--command-policy", "enforce")
	if r := got[0]; r.Status != episode.CallDenied || r.ErrorClass == "" || r.Verdict == nil || r.Verdict.Verdict != "block" || r.Verdict.Rule == "" {
		t.Errorf("%s, class %q, verdict %+v: %s", r.Status, r.ErrorClass, r.Verdict, r.Result)
	}
	if r := got[1]; r.Status != episode.CallOK || !strings.Contains(r.Result, "alive") {
		t.Errorf("%s: %s", r.Status, r.Result)
	}
	if r := script(t, calls[1:], "--sandbox", "native")[0]; r.Status != episode.CallOK {
		t.Errorf("without the policy's say: %s", r.Status)
	}
}

// TestHundredCalls makes many calls in one sandbox, from standard input, and wants their results in order.
func TestHundredCalls(t *testing.T) {
	var calls strings.Builder
	for i := range 100 {
		arguments := fmt.Sprintf(`{"command":"echo %d >> n.txt; wc -l < n.txt"}`, i)
		if i%2 == 1 { // as models send them
			quoted, err := json.Marshal(arguments)
			if err != nil {
				t.Fatal(err)
			}
			arguments = string(quoted)
		}
		fmt.Fprintf(&calls, `{"name":"terminal","arguments":%s}`+"\n", arguments)
	}
	cmd := exec.Command(build(t), "tools", "call", "--script", "-", "--sandbox", "local")
	cmd.Stdin = strings.NewReader(calls.String())
	got := finish(t, cmd)
	results := lines[resultLine](t, got.out)
	if got.code != 0 || len(results) != 100 {
		t.Fatalf("exit code %d, %d results: %s", got.code, len(results), got.errOut)
	}
	for i, r := range results {
		var result struct {
			Output string
		}
		if err := json.Unmarshal([]byte(r.Result), &result); err != nil || strings.TrimSpace(result.Output) != fmt.Sprint(i+1) {
			t.Errorf("call %d printed %q, %v", i, result.Output, err)
		}
		if string(r.Arguments) == "" || !strings.HasPrefix(r.RawArguments, "{") {
			t.Errorf("call %d: arguments %s, raw %s", i, r.Arguments, r.RawArguments)
		}
	}
}

// TestCallFlags holds what the flags of a call do and which of them are refused.
func TestCallFlags(t *testing.T) {
	t.Parallel()
	calls := write(t, "calls.jsonl", `{"name":"todo","arguments":{}}`)
	for _, args := range [][]string{
		{"todo"},
		{"todo", "{}", "more"},
		{"todo", "{}", "--script", calls},
		{"todo", "{}", "--sandbox", "no-such"},
		{"todo", "{}", "--toolsets", "no-such"},
		{"todo", "{}", "--workspace", "/no/such"},
		{"todo", "{}", "--env", "NOVALUE"},
		{"todo", "{}", "--plugin", "/no/such"},
		{"todo", "{}", "-f", "/no/such.yaml"},
		{"--script", "/no/such.jsonl"},
		{"--script", write(t, "bad.jsonl", "{\"name\":\"todo\"}\nnot json\n")},
		{"--no-such-flag"},
	} {
		if got := trajgen(t, append([]string{"tools", "call"}, args...)...); got.code != exitUsage || got.errOut == "" || got.out != "" {
			t.Errorf("%v: exit code %d: %s%s", args, got.code, got.errOut, got.out)
		}
	}
	one := func(args ...string) resultLine {
		t.Helper()
		results := lines[resultLine](t, succeed(t, append([]string{"tools", "call"}, args...)...).out)
		if len(results) != 1 {
			t.Fatalf("%d results", len(results))
		}
		return results[0]
	}
	if got := one("terminal", `{"command":"true"}`, "--toolsets", "file"); got.Status != episode.CallUnknownTool {
		t.Errorf("a tool that is not enabled: %s", got.Status)
	}
	if got := one("terminal", `"{\"command\":\"echo ok\"}"`); got.Status != episode.CallOK || got.RawArguments != `{"command":"echo ok"}` {
		t.Errorf("arguments as a string: %s, raw %s", got.Status, got.RawArguments)
	}
	if got := one("terminal", `{"command":"env; echo ${SECRET-none}"}`, "--env", "SECRET=hunter2", "--sandbox", "local"); strings.Contains(got.Result, "hunter2") {
		t.Errorf("the runner's environment is passed on: %s", got.Result)
	}
	workspace := t.TempDir()
	if err := os.MkdirAll(filepath.Join(workspace, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "a/b/run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := one("terminal", `{"command":"a/b/run.sh"}`, "--workspace", workspace); !strings.Contains(got.Result, "ran") {
		t.Errorf("workspace: %s", got.Result)
	}
	if entries, err := os.ReadDir(workspace); err != nil || len(entries) != 1 {
		t.Errorf("the workspace itself was changed: %v, %v", entries, err)
	}
}

// TestKeep holds that a kept sandbox is there when the command has ended, and gone when its keeper is.
func TestKeep(t *testing.T) {
	for _, backend := range []string{"local", "native"} {
		t.Run(backend, func(t *testing.T) {
			got := succeed(t, "tools", "call", "terminal", `{"command":"echo kept > k.txt; pwd"}`, "--keep=1m", "--sandbox", backend)
			if results := lines[resultLine](t, got.out); len(results) != 1 || results[0].Status != episode.CallOK {
				t.Fatalf("results %s", got.out)
			}
			var id string
			var keeper int
			if _, err := fmt.Sscanf(got.errOut, "sandbox %s", &id); err != nil {
				t.Fatalf("%v: %s", err, got.errOut)
			}
			_, pid, _ := strings.Cut(got.errOut, "kill ")
			if _, err := fmt.Sscan(pid, &keeper); err != nil {
				t.Fatalf("%v: %s", err, got.errOut)
			}
			process, err := os.FindProcess(keeper)
			if err != nil {
				t.Fatal(err)
			}
			defer process.Kill()
			if list := succeed(t, "sandbox", "list").out; !strings.Contains(list, id) {
				t.Errorf("%s is not in the list: %s", id, list)
			}
			if err := process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if list := succeed(t, "sandbox", "list").out; !strings.Contains(list, id) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s is still there", id)
				}
			}
		})
	}
	if got := trajgen(t, "tools", "call", "todo", "{}", "--keep", "--toolsets", "no-such"); got.code != exitUsage || got.errOut == "" {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
}

// TestGuardrailsOfScript has a script's calls watched like those of an episode.
func TestGuardrailsOfScript(t *testing.T) {
	failing := `{"name":"read_file","arguments":{"path":"none.txt"}}`
	calls := []string{failing, failing, `{"name":"todo","arguments":{}}`}
	got := script(t, calls)
	if got[0].Notice != "" || !strings.Contains(got[1].Notice, "failed 2 times") || got[2].Notice != "" {
		t.Errorf("notices %q, %q, %q", got[0].Notice, got[1].Notice, got[2].Notice)
	}
	if got[0].Result != got[1].Result {
		t.Errorf("the second result is another: %s, %s", got[0].Result, got[1].Result)
	}
	file := write(t, "run.yaml", "tools: {guardrails: off}\n")
	if got := script(t, calls, "-f", file); got[1].Notice != "" {
		t.Errorf("guardrails are off, and there is a notice: %s", got[1].Notice)
	}
}

// TestCallOfTheWeb names sites, a corpus and a recording as a run does.
func TestCallOfTheWeb(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		call, want string
		args       []string
	}{
		{`{"name":"web_extract","arguments":{"urls":["http://shop.test/product/118"]}}`, "Fjord Tent", []string{"--site", "wiki,shop"}},
		{`{"name":"web_search","arguments":{"query":"calendar"}}`, "calendar", []string{"--web", "corpus", "--corpus", "bundled"}},
		{`{"name":"search","arguments":{"query":"calendar"}}`, "calendar", []string{"--corpus", "bundled"}},
	} {
		if got := script(t, []string{tt.call}, tt.args...)[0]; got.Status != episode.CallOK || !strings.Contains(got.Result, tt.want) {
			t.Errorf("%s %v: %s: %.300s", tt.call, tt.args, got.Status, got.Result)
		}
	}
	for want, args := range map[string][]string{
		"shap": {"--site", "shap"}, "a run, which keeps": {"--web", "record"}, "go together": {"--web", "replay"}, "unknown mode": {"--web", "dead"},
		"recording of the web": {"--web", "replay", "--web-recording", t.TempDir()},
	} {
		got := trajgen(t, append([]string{"tools", "call", "web_search", `{"query":"x"}`}, args...)...)
		if got.code != 2 || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: exit code %d: %s, want %q", args, got.code, got.errOut, want)
		}
	}
}
