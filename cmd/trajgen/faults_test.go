package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faultyTasks have calls of each kind of tool.
func faultyTasks(n int) string {
	script := "import trajgen_tools as t\nt.ticket_add(title='from a script')\nprint(open('a.txt').read())\nprint(t.read_file(path='a.txt'))"
	calls := []any{
		map[string]any{"name": "write_file", "arguments": map[string]any{"path": "a.txt", "content": "one 1234\ntwo 5678\n"}},
		map[string]any{"name": "terminal", "arguments": map[string]any{"command": "sleep 600", "background": true}},
		map[string]any{"name": "web_search", "arguments": map[string]any{"query": "lighthouse"}},
		map[string]any{"name": "ticket_add", "arguments": map[string]any{"title": "a"}},
		map[string]any{"name": "mcp_notes_add", "arguments": map[string]any{"text": "a"}},
	}
	turns, _ := json.Marshal([]any{
		map[string]any{"tool_calls": calls},
		map[string]any{"tool_calls": []any{map[string]any{"name": "execute_code", "arguments": map[string]any{"code": script}}}},
		map[string]any{"tool_calls": []any{map[string]any{"name": "read_file", "arguments": map[string]any{"path": "a.txt"}}}},
		map[string]any{"content": "done"},
	})
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"faulty-%d","prompt":"Do %d.","verify":{"exact":"done"},"gold":%s}`+"\n", i, i, turns)
	}
	return text.String()
}

// faultyRun is a run file with the tools of faultyTasks, whose answers do not change.
func faultyRun(t *testing.T) string {
	still := strings.NewReplacer("'$n'", "7", "'$(date +%s%N)'", "8", "'$TICKET_KEY'", "x")
	plugin, server := write(t, "tickets.sh", still.Replace(ticketPlugin)), write(t, "notes.sh", still.Replace(notesServer))
	return write(t, "run.yaml", fmt.Sprintf(`web: {mode: corpus, corpus: bundled}
mcp: {servers: {notes: {command: [sh, notes.sh], files: [%s]}}}
tools:
  toolsets: [file, terminal, web, code_execution, plugin-tickets, notes]
  plugins: [{name: tickets, command: [sh, tickets.sh], files: [%s], scripts: true}]
`, server, plugin))
}

// TestFaultsAtALevel plants faults into calls of each kind of tool, and holds that they are the same for any number of workers, after
// a kill, and from a tape.
func TestFaultsAtALevel(t *testing.T) {
	t.Parallel()
	settings := write(t, "faults.yaml", "level: 0.3\nclasses: [timeout, error_transient, error_permanent, schema_drift, truncated:marked, malformed, wrong_value, garbled, duplicated]\n")
	dir := t.TempDir()
	args := []string{"-f", faultyRun(t), "--dataset", write(t, "d.jsonl", faultyTasks(24)), "--policy", "oracle", "--faults", settings, "--max-error-share", "1"}
	played := plays(t, dir, args...)
	play := func(name string, more ...string) []string { return unconnected(t, played(name, more...)) }
	want := play("one", "--workers", "1", "--record", filepath.Join(dir, "tape"))
	sameRows(t, want, play("many", "--workers", "64"))
	sameRows(t, want, play("again", "--workers", "3", "--replay", filepath.Join(dir, "tape")))

	out := filepath.Join(dir, "killed")
	cmd := exec.Command(build(t), slices.Concat([]string{"run"}, args, []string{"--quiet", "--out", out, "--workers", "2"})...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(out, "run.json")) || len(episodes(t, out)) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	if n := len(episodes(t, out)); n == len(want) {
		t.Errorf("%d episodes were done before the kill", n)
	}
	sameRows(t, want, play("killed", "--resume"))

	struck := map[string]bool{}
	for _, ep := range episodes(t, out) {
		if ep.Planted == nil || ep.Planted.Level != 0.3 || ep.Planted.LogP >= 0 || ep.Outcome != "success" {
			t.Errorf("%s: %s %+v", ep.Key.Task, ep.Outcome, ep.Planted)
		}
		messages, _ := json.Marshal(ep.Messages)
		if text := strings.ToLower(string(messages)); strings.Contains(text, "planted") || strings.Contains(text, "faults") {
			t.Errorf("%s: the model sees the plan", ep.Key.Task)
		}
		places := ep.Places()
		for i, c := range ep.Calls {
			if c.Planted != nil {
				struck[c.Name] = true
				struck["a script's call"] = struck["a script's call"] || places[i].Nested > 0
			}
		}
	}
	for _, what := range []string{"write_file", "read_file", "terminal", "web_search", "ticket_add", "mcp_notes_add", "execute_code", "a script's call"} {
		if !struck[what] {
			t.Errorf("%s has no fault", what)
		}
	}

	// Other faults are another experiment, and training data has none of them.
	more := write(t, "more.yaml", "level: 0.4\n")
	args[slices.Index(args, settings)] = more
	if got := trajgen(t, slices.Concat([]string{"run"}, args, []string{"--out", out, "--resume"})...); got.code == 0 || !strings.Contains(got.errOut, "faults") {
		t.Errorf("resume with other faults: exit code %d, %s", got.code, got.errOut)
	}
	clean, all := filepath.Join(dir, "clean.jsonl"), filepath.Join(dir, "all.jsonl")
	succeed(t, "export", "--run", out, "--to", "openai", "--out", clean)
	succeed(t, "export", "--run", out, "--to", "openai", "--out", all, "--include-faulted")
	without, _ := os.ReadFile(clean)
	with, _ := os.ReadFile(all)
	if few, many := strings.Count(string(without), "\n"), strings.Count(string(with), "\n"); few >= many || many != len(want) {
		t.Errorf("training data of %d episodes, with faults of %d", few, many)
	}
	short := filepath.Join(dir, "short.jsonl")
	succeed(t, "compress", "--run", out, "--to", "openai", "--budget", "1000000", "--out", short, "--include-faulted")
	if compressed, err := os.ReadFile(short); err != nil || string(compressed) != string(with) {
		t.Errorf("compress with faults wrote %d bytes, export %d (%v)", len(compressed), len(with), err)
	}
}
