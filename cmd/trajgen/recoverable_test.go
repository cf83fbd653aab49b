package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/tools/faults"
)

// TestRecoverable has check say what a task's reference solution recovers from, and a run tell twins apart by it. The task's tool must work
// once to give what it has; its second way is another tool.
func TestRecoverable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := write(t, "d.jsonl", `{"id":"two ways","prompt":"Read a.","files":{"a":"17 pears"},"verify":{"exact":"17"},"gold":[`+
		`{"tool_calls":[{"name":"read_file","arguments":{"path":"a"}}]},{"content":"17"}]}
{"id":"one way","prompt":"Write b.","verify":{"command":"test -e b"},"gold":[`+
		`{"tool_calls":[{"name":"terminal","arguments":{"command":"echo x > b"}}]},{"content":"done"}]}
`)
	settings := "twins: true\nclasses: [error_transient, tool_missing]\n"
	list := succeed(t, "check", "--dataset", data, "--toolsets", "file,terminal", "--faults", write(t, "faults.yaml", settings), "--json", "--quiet").out
	var all []faults.Recovery
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	for _, r := range all {
		if r.Tried != 2 || r.Recovered == 0 && r.Class == "error_transient" {
			t.Errorf("%+v", r)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d recoveries, want those of two classes in two tasks: %+v", len(all), all)
	}
	text := succeed(t, "check", "--dataset", data, "--toolsets", "file,terminal", "--faults", write(t, "faults.yaml", settings), "--quiet").out
	if !strings.Contains(text, "2 tasks: 0 fail") || !strings.Contains(text, "error_transient of terminal: recoverable in 1 of 1 tasks\n") {
		t.Error(text)
	}

	known := write(t, "known.json", `[{"task":"one way","tool":"terminal","class":"tool_missing","tried":2,"recovered":0},{"task":"one way","tool":"terminal","class":"error_transient","tried":2,"recovered":1}]`)
	out := filepath.Join(dir, "out")
	succeed(t, "run", "--dataset", data, "--toolsets", "file,terminal", "--policy", "retrier:1", "--faults", write(t, "f.yaml", settings+"recoverable: "+known+"\n"), "--quiet", "--out", out)
	for _, ep := range episodes(t, out) {
		if ep.Twin == nil {
			continue
		}
		got := "not tried"
		if r := ep.Twin.Recoverable; r != nil {
			got = map[bool]string{true: "yes", false: "no"}[*r]
		}
		want := map[string]string{"one way tool_missing": "no", "one way error_transient": "yes"}[ep.Key.Task+" "+ep.Twin.Class]
		if want == "" {
			want = "not tried"
		}
		if got != want {
			t.Errorf("%s %s: %s, want %s", ep.Key.Task, ep.Twin.Class, got, want)
		}
	}
	if said := succeed(t, "reliability", "--run", out).out; !strings.Contains(said, "terminal (unrecoverable)") {
		t.Error(said)
	}
	if got := trajgen(t, "run", "--dataset", data, "--policy", "oracle", "--faults", write(t, "g.yaml", settings+"recoverable: "+data+"\n"), "--quiet", "--out", out+"2"); got.code != exitUsage || !strings.Contains(got.errOut, "check --faults --json") {
		t.Errorf("another file: code %d, %s", got.code, got.errOut)
	}
}

// TestCheckWithoutFaults proves the tasks of a run file that plants faults: they are no part of the proof.
func TestCheckWithoutFaults(t *testing.T) {
	t.Parallel()
	file := write(t, "run.yaml", "dataset: {path: bundled, slice: '4:6'}\nfaults: {level: 1, classes: [error_permanent]}\n")
	if said := succeed(t, "check", "-f", file, "--quiet").out; !strings.Contains(said, "2 tasks: 0 fail") {
		t.Error(said)
	}
}
