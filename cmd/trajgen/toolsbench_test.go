package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trajgen/pipeline/run/toolbench"
)

func benched(t *testing.T, code int, args ...string) (r toolbench.Report) {
	t.Helper()
	got := trajgen(t, append([]string{"tools", "bench", "--json"}, args...)...)
	if got.code != code {
		t.Fatalf("exit code %d, want %d\n%s\n%s", got.code, code, got.errOut, got.out)
	}
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	return r
}

// TestToolTests holds that the tests that come along pass, and that what is not as expected is said, with exit code 4.
func TestToolTests(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../examples/tooltests/files.yaml")
	if err != nil {
		t.Fatal(err)
	}
	benched(t, exitDone, "--script", examples)
	wrong := write(t, "wrong.yaml", `tests:
- name: all of it
  files: {a.txt: "one\n"}
  tool: read_file
  arguments: {path: a.txt}
  want: {status: error, contains: [three], at: {/content: "1|two", /none: 1}, files: {a.txt: null, b.txt: ""}}
- name: code
  tool: terminal
  arguments: {command: "false"}
  want: {exit_code: 0, class: timeout}
`)
	r := benched(t, exitGate, "--script", wrong)
	var all []string
	for _, failed := range r.Failed {
		all = append(all, failed.Wrong...)
	}
	for _, want := range []string{
		`status is "ok"; want "error"`, `want "three" in it`, `result/content is "1|one"; want "1|two"`, "result has no /none",
		`file a.txt is "one\n"; want none`, `file b.txt does not exist; want ""`, "exit code is 1; want 0", `class is ""; want "timeout"`,
	} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%q is not said: %s", want, strings.Join(all, "\n"))
		}
	}
}

// TestBenchOfRun makes recorded calls again: each finds the state in which it was made, and ends as it did.
func TestBenchOfRun(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "--dataset", "bundled", "--max-tasks", "6", "--toolsets", "file,terminal", "--policy", "noisy", "--out", out, "--quiet")
	ledger := t.TempDir()
	r := benched(t, exitDone, "--from", out, "--repeat", "2", "--workers", "1,4", "--backend", "native,local", "--ledger", ledger)
	lines, err := os.ReadFile(filepath.Join(ledger, "tools.jsonl"))
	if err != nil || strings.Count(string(lines), "\n") != len(r.Tools) {
		t.Errorf("ledger of %d tools: %v\n%s", len(r.Tools), err, lines)
	}
	if said := succeed(t, "tools", "drift", "--ledger", ledger).out; !strings.HasPrefix(said, "nothing got worse: ") {
		t.Error(said)
	}
	again := regexp.MustCompile(`"schema_digest":"[^"]*"`).ReplaceAllString(string(lines), `"schema_digest":"other"`)
	if err := os.WriteFile(filepath.Join(ledger, "tools.jsonl"), append(lines, again...), 0o666); err != nil {
		t.Fatal(err)
	}
	drift := trajgen(t, "tools", "drift", "--ledger", ledger)
	if drift.code != exitGate || strings.Count(drift.out, " schema changed since ") != len(r.Tools) {
		t.Errorf("exit code %d: %s%s", drift.code, drift.out, drift.errOut)
	}
	calls := map[string]int{}
	for _, tool := range r.Tools {
		if tool.Plays != 2*tool.Calls || tool.Pairs != tool.Calls || tool.Errors > 0 || tool.ElapsedUS.P50.Value <= 0 {
			t.Errorf("%+v", tool)
		}
		if was, ok := calls[tool.Name]; ok && was != tool.Calls {
			t.Errorf("%s: %d calls with %s, %d elsewhere", tool.Name, tool.Calls, tool.Backend, was)
		}
		calls[tool.Name] = tool.Calls
	}
	if len(calls) == 0 || len(r.Tools) != 4*len(calls) {
		t.Errorf("%d measurements of %d tools, want 4 of each", len(r.Tools), len(calls))
	}
}

// TestGeneratedCalls holds that file tools answer whatever they are called with, and refuse wrong types.
func TestGeneratedCalls(t *testing.T) {
	t.Parallel()
	for _, tool := range benched(t, exitDone, "--generate", "--toolsets", "file,todo", "--workers", "4").Tools {
		if tool.Calls < 3 || tool.Errors > 0 || tool.Between.High <= 0 {
			t.Errorf("%+v", tool)
		}
	}
}

// TestUnlikePlays holds that a result that differs from play to play is found.
func TestUnlikePlays(t *testing.T) {
	t.Parallel()
	script := write(t, "random.yaml", "tests: [{name: a, tool: terminal, arguments: {command: 'cat /proc/sys/kernel/random/uuid'}}]\n")
	r := benched(t, exitDone, "--script", script, "--repeat", "3")
	if tool := r.Tools[0]; tool.Pairs != 2 || tool.Differing != 2 || tool.First == nil || tool.First.At != "/result/output" {
		t.Errorf("%+v", tool)
	}
}
