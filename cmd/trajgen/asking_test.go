package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
)

// watched is a scripted endpoint that keeps what it is asked.
type watched struct {
	url    string
	mu     sync.Mutex
	bodies []map[string]any
	heads  []http.Header
}

func watch(t *testing.T, model, dataset string) *watched {
	t.Helper()
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: model})
	if err != nil {
		t.Fatal(err)
	}
	learn(t, server, dataset)
	w := &watched{}
	at := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var fields map[string]any
		if json.Unmarshal(body, &fields) == nil {
			w.mu.Lock()
			w.bodies, w.heads = append(w.bodies, fields), append(w.heads, r.Header)
			w.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.Handler().ServeHTTP(rw, r)
	}))
	t.Cleanup(at.Close)
	w.url = at.URL + "/v1"
	return w
}

// put writes files into a folder.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const asked = `{"id": "a", "system": "Be brief.", "prompt": "What is 6*7?", "verify": {"exact": "42"}, "gold": "42"}
{"id": "b", "prompt": "What is 2+2?", "verify": {"exact": "4"}, "gold": "4"}
`

// TestSweepOfARun plays two models, each on its own server, at two temperatures, with all that is put into requests.
func TestSweepOfARun(t *testing.T) {
	dir := put(t, map[string]string{
		"tasks.jsonl":   asked,
		"ephemeral.txt": "Today is Monday.\n",
		"examples.yaml": "- {role: user, content: 'What is 1+1?'}\n- {role: assistant, content: '2'}\n",
	})
	tasks := filepath.Join(dir, "tasks.jsonl")
	first, second := watch(t, "one", tasks), watch(t, "two", tasks)
	t.Setenv("FIRST_KEY", "first-secret")
	t.Setenv("SECOND_KEY", "second-secret")
	t.Setenv("GATEWAY", "gateway-secret")
	file := filepath.Join(dir, "run.yaml")
	text := fmt.Sprintf(`
dataset: {path: %s}
samples: 5
model:
  base_url: %s
  api_key_env: FIRST_KEY
  header_env: {X-Gateway: GATEWAY}
  headers: {X-Title: mine}
  max_tokens: 50
  top_p: 0
  send_seed: false
  parallel_tool_calls: false
  tool_choice: required_first
  extra_body: {min_p: 0.05, tool_choice: null}
  provider: {order: [x], allow_fallbacks: false}
tools: {toolsets: [todo]}
prompts: {prefill: %s, ephemeral: %s}
sandbox: {backend: local}
sweep:
  model: [one, {name: two, base_url: %s, api_key_env: SECOND_KEY}]
  temperature: [0, 0.7]
`, tasks, first.url, filepath.Join(dir, "examples.yaml"), filepath.Join(dir, "ephemeral.txt"), second.url)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	if got := here(t, "run", "-f", file, "--out", out, "--quiet"); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	all := episodes(t, out)
	var samplings []string
	for _, ep := range all[:5] {
		samplings = append(samplings, ep.Sampling.String())
	}
	want := []string{
		"model=one temperature=0 top_p=0 max_tokens=50", "model=one temperature=0.7 top_p=0 max_tokens=50",
		"model=two temperature=0 top_p=0 max_tokens=50", "model=two temperature=0.7 top_p=0 max_tokens=50",
		"model=one temperature=0 top_p=0 max_tokens=50",
	}
	if diff := cmp.Diff(want, samplings); diff != "" {
		t.Errorf("settings by sample (-want +got):\n%s", diff)
	}
	if got := outcomes(t, all); got[episode.Success] != 10 {
		t.Errorf("outcomes %v, want 10 successes", got)
	}
	for _, server := range []struct {
		*watched
		model, key, gateway string
		requests            int
	}{{first, "one", "Bearer first-secret", "gateway-secret", 6}, {second, "two", "Bearer second-secret", "", 4}} {
		if len(server.bodies) != server.requests {
			t.Fatalf("%s got %d requests, want %d", server.model, len(server.bodies), server.requests)
		}
		for i, body := range server.bodies {
			head := server.heads[i]
			if head.Get("Authorization") != server.key || head.Get("X-Gateway") != server.gateway || head.Get("X-Title") != "mine" {
				t.Errorf("%s got key %q, gateway %q, title %q", server.model, head.Get("Authorization"), head.Get("X-Gateway"), head.Get("X-Title"))
			}
			temperature := body["temperature"]
			messages := body["messages"].([]any)
			for _, field := range []string{"messages", "tools", "temperature"} {
				delete(body, field)
			}
			wantBody := map[string]any{"model": server.model, "max_tokens": 50.0, "min_p": 0.05, "parallel_tool_calls": false, "stream": false, "top_p": 0.0,
				"provider": map[string]any{"order": []any{"x"}, "allow_fallbacks": false}}
			if diff := cmp.Diff(wantBody, body); diff != "" || temperature != 0.0 && temperature != 0.7 {
				t.Errorf("%s, temperature %v (-want +got):\n%s", server.model, temperature, diff)
			}
			if said := fmt.Sprint(messages[0]); !strings.Contains(said, "Today is Monday.]") && !strings.Contains(said, "Today is Monday. role:system]") || len(messages) != 4 {
				t.Errorf("messages %v", messages)
			}
		}
	}
	t.Run("report", func(t *testing.T) {
		var report struct {
			Model string
			Sweep []struct {
				Name     string
				Episodes int
			}
		}
		got := here(t, "report", "--run", out, "--json")
		if err := json.Unmarshal([]byte(got.out), &report); err != nil || len(report.Sweep) != 4 || report.Model != "one, two" {
			t.Fatalf("report of %q: %+v, %v", report.Model, report.Sweep, err)
		}
		if first := report.Sweep[0]; first.Name != "model=one temperature=0" || first.Episodes != 4 {
			t.Errorf("first combination %+v", first)
		}
	})
	t.Run("export", func(t *testing.T) { exportedWithout(t, out) })
	t.Run("resume", func(t *testing.T) {
		if got := here(t, "run", "--resume", "--out", out, "--quiet", "--samples", "6"); got.code != 0 {
			t.Errorf("more samples: exit code %d: %s", got.code, got.errOut)
		}
		if more := episodes(t, out); len(more) != 12 || more[5].Sampling.String() != want[1] {
			t.Errorf("%d episodes, the sixth with %v", len(more), more[5].Sampling)
		}
		other := strings.Replace(text, "[0, 0.7]", "[0, 0.8]", 1)
		if err := os.WriteFile(file, []byte(other), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := here(t, "run", "-f", file, "--resume", "--out", out, "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "sweep: was") {
			t.Errorf("another sweep: exit code %d: %s", got.code, got.errOut)
		}
	})
}

// exportedWithout holds that an export without the harness has the tasks' own words and the model's.
func exportedWithout(t *testing.T, run string) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if got := here(t, "export", "--run", run, "--to", "jsonl", "--out", path, "--without-harness"); got.code != 0 {
		t.Fatal(got.errOut)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var said []string
	for _, line := range slices.Concat(lines[:1], lines[len(lines)-1:]) {
		var ep episode.Episode
		if err := json.Unmarshal(line, &ep); err != nil {
			t.Fatal(err)
		}
		for _, m := range ep.Messages {
			said = append(said, m.Role+": "+m.Content)
		}
		if at := ep.Turns[0].Message; ep.Messages[at].Role != "assistant" || ep.Ephemeral != "" {
			t.Errorf("the turn is of %+v, ephemeral %q", ep.Messages[at], ep.Ephemeral)
		}
	}
	want := []string{"system: Be brief.", "user: What is 6*7?", "assistant: 42", "user: What is 2+2?", "assistant: 4"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestAskingOfARunRefused holds that what cannot be is refused before anything is started.
func TestAskingOfARunRefused(t *testing.T) {
	dir := put(t, map[string]string{"tasks.jsonl": asked, "empty.txt": " \n", "bad.json": `[{"role":"system","content":"x"}]`})
	at := func(name string) string { return filepath.Join(dir, name) }
	tests := []struct {
		name, file string
		args       []string
		want       string
	}{
		{"too few samples", "samples: 3\nsweep: {temperature: [0, 1], top_p: [0.1, 0.9]}", nil, "4 combinations (2 temperatures × 2 top_ps) and 3 samples of each task: give at least --samples 4"},
		{"given twice", "samples: 2\nsweep: {temperature: [0, 1]}", []string{"--temperature", "0.5"}, "temperature is given for the run and in its sweep"},
		{"in extra_body", "samples: 2\nsweep: {top_p: [0, 1]}\nmodel: {extra_body: {top_p: 0.3}}", nil, "top_p is given for the run and in its sweep"},
		{"unknown key", "sweep: {seed: [1, 2]}", nil, "seed is not a key of sweep (have model, reasoning_effort, temperature, top_p)"},
		{"unknown key of a model", "sweep: {model: [{name: a, url: b}]}", nil, "url is not a key of sweep.model[0] (have name, base_url, api_key_env)"},
		{"no list of models", "sweep: {model: a}", nil, "sweep.model is \"a\"; want a list, such as [a]"},
		{"models of a policy", "samples: 2\nsweep: {model: [a, b]}", nil, "a sweep of models and a policy are given"},
		{"no such tool", "", []string{"--tool-choice", "no_tool"}, `tool "no_tool" does not exist`},
		{"field of the limit", "", []string{"--max-tokens-field", "tokens"}, `max_tokens_field "tokens" (want auto`},
		{"empty prompt", "", []string{"--ephemeral-system-prompt", at("empty.txt")}, "is empty; leave it out"},
		{"prefill", "", []string{"--prefill", at("bad.json")}, `[0]: role is "system"`},
		{"twice in the body", "model: {extra_body: {reasoning_effort: low}}", []string{"--reasoning-effort", "high"}, "reasoning_effort is given by itself and as an extra body field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.yaml")
			if err := os.WriteFile(file, []byte(tt.file), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"run", "-f", file, "--dataset", at("tasks.jsonl"), "--policy", "oracle", "--sandbox", "local", "--quiet", "--out", filepath.Join(t.TempDir(), "r")}, tt.args...)
			if got := here(t, args...); got.code != exitUsage || !strings.Contains(got.errOut, tt.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", got.code, exitUsage, tt.want, got.errOut)
			}
		})
	}
}

// TestPrefillWithAPolicy holds that examples before a task do not confuse the embedded server, and that check takes a
// run file with everything in it.
func TestPrefillWithAPolicy(t *testing.T) {
	dir := put(t, map[string]string{"tasks.jsonl": asked, "p.json": `[{"role":"user","content":"What is 1+1?"},{"role":"assistant","content":"2"}]`, "e.txt": "e",
		"run.yaml": "samples: 2\nsweep: {temperature: [0, 1]}\nmodel: {tool_choice: required, provider: {sort: price}}\n"})
	common := []string{"-f", filepath.Join(dir, "run.yaml"), "--dataset", filepath.Join(dir, "tasks.jsonl"), "--prefill", filepath.Join(dir, "p.json"),
		"--ephemeral-system-prompt", filepath.Join(dir, "e.txt"), "--sandbox", "local", "--quiet"}
	if got := here(t, append([]string{"check"}, common...)...); got.code != 0 {
		t.Errorf("check: exit code %d: %s%s", got.code, got.errOut, got.out)
	}
	out := filepath.Join(dir, "run")
	if got := here(t, append(append([]string{"run"}, common...), "--policy", "oracle", "--tool-choice", "auto", "--out", out)...); got.code != 0 {
		t.Fatalf("run: exit code %d: %s", got.code, got.errOut)
	}
	if got := outcomes(t, episodes(t, out)); got[episode.Success] != 4 {
		t.Errorf("outcomes %v, want 4 successes", got)
	}
}

// TestReadmeRequests holds that the run file of requests in the manual is one.
func TestReadmeRequests(t *testing.T) {
	_, text, _ := strings.Cut(readPage(t, "docs/models.md"), "```yaml requests.yaml\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("docs/models.md has no requests.yaml")
	}
	file := run.Default()
	path := filepath.Join(put(t, map[string]string{"requests.yaml": text}), "requests.yaml")
	if err := run.Decode(path, "a run file", &file); err != nil {
		t.Fatal(err)
	}
	file.Dataset.Path, file.Scripted.Policy = datasets.Paths{"bundled"}, "noop"
	if err := file.Validate(); err != nil {
		t.Error(err)
	}
	if n := file.Sweep.Varied().Combinations(); n != 6 {
		t.Errorf("%d combinations, want 6", n)
	}
}
