package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"

	"github.com/google/go-cmp/cmp"
)

// TestRunFileMistakes holds that each is said with its line and key, and what would have been right.
func TestRunFileMistakes(t *testing.T) {
	tests := []struct {
		give string
		want []string
	}{
		{"samples: 2.9", []string{"run.yaml:1: samples is 2.9; want a whole number"}},
		{"seed: 1\nplay: {workers: two}\nlimits: {turns: [3]}\nseed_: 1", []string{
			`run.yaml:2: play.workers is "two"; want a whole number`, "run.yaml:3: limits.turns is a list; want a whole number", `run.yaml:4: seed_ is not a key of a run file (did you mean "seed"?)`}},
		{"dataset: {max-task: 3}", []string{`max-task is not a key of dataset (did you mean "max_tasks"?)`}},
		{"max-task: 3", []string{`max-task is not a key of a run file (did you mean "dataset.max_tasks"?)`}},
		{"colour: red", []string{"colour is not a key of a run file (have name, out, seed, samples, dataset, tools,", "sandbox, budget, context)"}},
		{"max_turns: 3\nworkers: 4", []string{"run.yaml:1: max_turns stands in a section of the run file: write limits: {turns: ...}", "run.yaml:2: workers stands in a section of the run file: write play: {workers: ...}"}},
		{"sandbox: {workers: 3}", []string{"workers stands in a section of the run file: write play: {workers: ...}"}},
		{"dataset: tasks.jsonl\nmodel: m\nsandbox: local", []string{"run.yaml:1: dataset stands in a section of the run file: write dataset: {path: ...}", "run.yaml:2: model stands in a section of the run file: write model: {name: ...}", "run.yaml:3: sandbox stands in a section of the run file: write sandbox: {backend: ...}"}},
		{"seed: -1", []string{"seed is -1; want a whole number from 0"}},
		{"seed: 1.5\nbudget: {tokens: 99999999999999999999}", []string{"seed is 1.5; want", "budget.tokens is 99999999999999999999; want a whole number"}},
		{"limits: {time: 10}", []string{"limits.time is 10; want a duration such as 90s or 5m"}},
		{"limits: {time: 1.5}", []string{"limits.time is 1.5; want a duration"}},
		{"model: {temperature: hot, stream: 1}\nsandbox: {memory: much}", []string{`model.temperature is "hot"; want a number`, "model.stream is 1; want true or false", `sandbox.memory is "much"; want a size such as`}},
		{"model: {name: [a, b]}", []string{"model.name is a list; want a text"}},
		{"tools: {toolsets: terminal}", []string{`tools.toolsets is "terminal"; want a list, such as [terminal]`}},
		{"dataset: {path: {a: b}}", []string{"dataset.path is a mapping; want a list"}},
		{"model: {fallbacks: [{model: a}, {modl: b}]}", []string{`modl is not a key of model.fallbacks[1] (did you mean "model"?)`}},
		{"model: {fallbacks: {model: a}}", []string{"model.fallbacks is a mapping; want a list"}},
		{"tools: {tool_search: {context_window: 1.5, limit: 3}}", []string{"tools.tool_search.context_window is 1.5; want a whole number", "limit is not a key of tools.tool_search (have enabled, threshold_pct,"}},
		{"sweep: {temperature: [0, cold], model: [a, {url: b}]}", []string{`sweep.temperature[1] is "cold"; want a number`, "url is not a key of sweep.model[1] (have name, base_url, api_key_env)"}},
		{"tools: {result_limits: {terminal: 1.5}}", []string{"tools.result_limits.terminal is 1.5; want a whole number"}},
		{"budget: {prices: {m: {input: cheap}}}", []string{`budget.prices.m.input is "cheap"; want a number`}},
		{"budget: {prices: {m: 3}}", []string{"budget.prices.m is 3; want a mapping with the keys input, output, cached_input, image, characters, second, date"}},
		{"samples: 1\nsamples: 2", []string{"run.yaml: yaml: unmarshal errors: line 2: mapping key \"samples\" already defined at line 1"}},
		{"- samples", []string{"run.yaml:1: a run file is a list; want a mapping"}},
		{"samples: 1\n---\nseed: 1", []string{"run.yaml: a second YAML document follows; a file holds one"}},
		{"model: {provider: &a {x: *a}}", []string{"run.yaml: yaml: anchor 'a' value contains itself"}},
	}
	for _, tt := range tests {
		path := writeRunTest(t, "run.yaml", tt.give)
		file := Default()
		err := Decode(path, "a run file", &file)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", tt.give, err, want)
			}
		}
	}
}

func TestRunFileForms(t *testing.T) {
	path := writeRunTest(t, "run.yaml", `
samples: 1e2
seed:
dataset: {path: tasks.jsonl, parts: {train: 0.5}}
model:
  temperature: 1
  top_p: null
  send_seed: false
  token_ids: true
  extra_body: {top_k: 20, min_p: null, deep: {er: [1, 2.5]}}
  fallbacks:
    - &first {model: a, base_url: x}
    - {<<: *first, model: b}
sandbox: {memory: 2G}
limits: {time: 90s}
tools:
  toolsets: &tools [terminal, file]
  disabled_toolsets: *tools
sweep: {model: [one, {name: two, base_url: u}]}
budget: {prices: {m: {input: 1, output: 2.5}}}
`)
	got := Default()
	if err := Decode(path, "a run file", &got); err != nil {
		t.Fatal(err)
	}
	want := Default()
	temperature, no := 1.0, false
	want.Dataset.Path, want.Samples, want.Model.Temperature, want.Model.SendSeed, want.Sandbox.Memory, want.Limits.Time = datasets.Paths{"tasks.jsonl"}, 100, &temperature, &no, 2<<30, 90*time.Second
	want.Tools.Toolsets, want.Tools.DisabledToolsets, want.Model.TokenIDs = []string{"terminal", "file"}, []string{"terminal", "file"}, "true"
	want.Sweep.Model = []sweptModel{{Name: "one"}, {Name: "two", BaseURL: "u"}}
	want.Model.Fallbacks = []model.Fallback{{Model: "a", BaseURL: "x"}, {Model: "b", BaseURL: "x"}}
	want.Model.ExtraBody = map[string]any{"top_k": 20, "min_p": nil, "deep": map[string]any{"er": []any{1, 2.5}}}
	want.Dataset.Parts, want.Budget.Prices = map[string]float64{"train": 0.5}, episode.Prices{"m": {Input: 1, Output: 2.5}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(File{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What run.json holds is read as it was written.
	var again File
	text, err := got.MarshalJSON()
	if err == nil {
		err = again.UnmarshalJSON(text)
	}
	if diff := cmp.Diff(got.Sweep, again.Sweep); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// writeRunTest makes a file, and returns its path.
func writeRunTest(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
