package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/pipeline/model/scripted"
)

// timeless are whole rows without what depends on time: which sample of a task was set up first does, too.
func timeless(t *testing.T, dir string) []string {
	t.Helper()
	var rows []string
	for _, ep := range episodes(t, dir) {
		data, err := json.Marshal(ep)
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal(data, &row); err != nil {
			t.Fatal(err)
		}
		forget(row)
		if data, err = json.Marshal(row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(data))
	}
	return rows
}

// plays returns a function that plays a run of these arguments in a directory of a name, and returns its rows without times.
func plays(t *testing.T, dir string, args ...string) func(name string, more ...string) []string {
	return func(name string, more ...string) []string {
		t.Helper()
		out := filepath.Join(dir, name)
		succeed(t, slices.Concat([]string{"run"}, args, []string{"--quiet", "--out", out}, more)...)
		return timeless(t, out)
	}
}

func forget(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			forget(item)
		}
	case map[string]any:
		for _, name := range []string{"started", "elapsed", "phases", "waited", "pause", "sandbox_time", "forked"} {
			delete(v, name)
		}
		for _, item := range v {
			forget(item)
		}
	}
}

const tapedTasks = `{"id":"plain","prompt":"Say the answer.","gold":[{"content":"42"}],"verify":{"exact":"42"}}
{"id":"tools","prompt":"Make a file.","gold":[{"tool_calls":[{"name":"write_file","arguments":{"path":"a.txt","content":"one\n"}},{"name":"terminal","arguments":{"command":"mkdir build; echo two >> a.txt"}}]},{"tool_calls":[{"name":"terminal","arguments":{"command":"rm -rf build; cat a.txt"}}]},{"content":"done"}],"verify":{"command":"test $(wc -l < a.txt) = 2"}}
{"id":"asks","prompt":"Ask me.","user":{"model":true},"gold":[{"tool_calls":[{"name":"clarify","arguments":{"question":"Which color?"}}]},{"tool_calls":[{"name":"clarify","arguments":{"question":"Which size?"}}]},{"content":"thanks"}]}
{"id":"again","prompt":"Look around.","gold":[{"tool_calls":[{"name":"terminal","arguments":{"command":"echo a; echo b"}}]},{"tool_calls":[{"name":"terminal","arguments":{"command":"rm -rf c"}}]},{"content":"ok"}]}
`

// TestTape plays a run again without its servers, which failed some requests and never answer the same twice.
func TestTape(t *testing.T) {
	dataset := write(t, "d.jsonl", tapedTasks)
	server, err := scripted.New(scripted.Config{
		Policy: "oracle", Model: "m", FaultRate: 0.15, Faults: []string{"500;times=1", "cut;times=1", "reset;times=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := teach(t.Context(), server, dataset, ""); err != nil {
		t.Fatal(err)
	}
	agent := httptest.NewServer(server.Handler())
	var asked atomic.Int64
	person := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"p"}]}`)
			return
		}
		text, _ := json.Marshal(fmt.Sprintf(`{"decision": "once", "reason": "question %d"}`, asked.Add(1)))
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":%d}}`, text, asked.Load())
	}))
	defer agent.Close()
	defer person.Close()

	dir := t.TempDir()
	first, taped := filepath.Join(dir, "first"), filepath.Join(dir, "tape")
	common := []string{"run", "--dataset", dataset, "--model", "m", "--stream", "--seed", "5", "--quiet", "--episode-retries", "2", "--max-error-share", "1", "--max-turns", "6",
		"--command-policy", "approve", "--approver", "model", "--approver-model", "p", "--user-model", "p"}
	at := []string{"--base-url", agent.URL + "/v1", "--user-base-url", person.URL, "--approver-base-url", person.URL, "--request-retries", "2"}
	t.Setenv("TAPE_KEY", "sk-never-on-a-tape")
	record := append(append(common, at...), "--api-key-env", "TAPE_KEY", "--out", first, "--workers", "8", "--record", taped)
	succeed(t, append(record, "--samples", "1")...)
	succeed(t, append(record, "--samples", "2", "--resume")...) // the same tape goes on
	agent.Close()
	person.Close()
	want := timeless(t, first)
	if all := strings.Join(want, ""); !strings.Contains(all, `"retries"`) || !strings.Contains(all, "approved by model") || !strings.Contains(all, "question ") || len(want) != 8 {
		t.Fatalf("the run has no retries, no approval or no answer of its user: %s", cut(all))
	}
	if data, err := os.ReadFile(taped); err != nil || strings.Contains(string(data), "never-on-a-tape") {
		t.Errorf("the key is on the tape (%v)", err)
	}

	played := append(common, "--user-base-url", person.URL, "--approver-base-url", person.URL, "--samples", "2")
	again := filepath.Join(dir, "again")
	succeed(t, append(played, "--out", again, "--workers", "3", "--replay", taped)...)
	sameRows(t, want, timeless(t, again))

	// Other requests cannot be replayed: the run ends at the first of them.
	if got := trajgen(t, append(played, "--out", filepath.Join(dir, "hot"), "--temperature", "0.3", "--replay", taped)...); got.code != exitFailed ||
		!strings.Contains(got.errOut, "turn 0: temperature differs from the tape (recorded nothing, now \"0.3\")") || !strings.Contains(got.errOut, "--resume") {
		t.Errorf("another temperature: exit code %d, %s", got.code, got.errOut)
	}
	if got := trajgen(t, append(played, "--out", filepath.Join(dir, "seed"), "--seed", "6", "--replay", taped)...); got.code != exitFailed || !strings.Contains(got.errOut, "is not on the tape") {
		t.Errorf("another seed: exit code %d, %s", got.code, got.errOut)
	}
	// Another verifier asks the model nothing else: what was recorded is judged anew.
	other := write(t, "d.jsonl", strings.ReplaceAll(tapedTasks, `{"exact":"42"}`, `{"regex":"^[0-9]+$"}`))
	judged := slices.Clone(played)
	judged[slices.Index(judged, dataset)] = other
	succeed(t, append(judged, "--out", filepath.Join(dir, "judged"), "--replay", taped)...)
}

func TestTapeMistakes(t *testing.T) {
	t.Parallel()
	dataset, dir := write(t, "d.jsonl", `{"id":"a","prompt":"p","gold":[{"content":"x"}]}`+"\n"), t.TempDir()
	args := []string{"run", "--dataset", dataset, "--quiet"}
	run, taped := filepath.Join(dir, "run"), filepath.Join(dir, "run", "tape")
	succeed(t, append(args, "--policy", "oracle", "--out", run, "--record", taped)...)
	untaped := filepath.Join(dir, "untaped")
	succeed(t, append(args, "--policy", "oracle", "--out", untaped)...)
	succeed(t, append(args, "--policy", "oracle", "--out", filepath.Join(dir, "again"), "--replay", run)...)
	for _, tt := range []struct {
		name string
		give []string
		want string
	}{
		{"both", []string{"--policy", "oracle", "--replay", run, "--record", taped}, "leave one out"},
		{"none there", []string{"--policy", "oracle", "--replay", filepath.Join(dir, "nowhere")}, "no such file"},
		{"a run without", []string{"--model", "m", "--replay", untaped}, "--policy replay"},
		{"a directory without", []string{"--model", "m", "--replay", dir}, "that --record was given"},
		{"a file for the policy", []string{"--policy", "replay", "--replay", taped}, "leave policy out"},
		{"no tape", []string{"--model", "m", "--replay", dataset}, "is not a tape"},
		{"another run's", []string{"--policy", "oracle", "--record", taped}, "--resume goes on with it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			got := trajgen(t, append(append(args, "--out", out), tt.give...)...)
			if got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
				t.Errorf("exit code %d, want %d and %q: %s", got.code, exitUsage, tt.want, got.errOut)
			}
		})
	}
}
