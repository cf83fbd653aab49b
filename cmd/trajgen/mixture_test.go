package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/distributions"
)

// council is a server with three models, of which the last makes one answer of the others'. lost refuses.
func council(t *testing.T, asked *atomic.Int64) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"owl","object":"model"},{"id":"fox","object":"model"},{"id":"lost","object":"model"},{"id":"chair","object":"model"}]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var req struct {
			Model       string
			Seed        int
			Temperature float64
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Error(err)
		}
		asked.Add(1)
		if req.Model == "lost" {
			http.Error(w, `{"error":{"message":"I am not well","type":"server_error"}}`, http.StatusInternalServerError)
			return
		}
		text := fmt.Sprintf("%s says %d at %v", req.Model, req.Seed%1000, req.Temperature)
		if req.Model == "chair" && (!strings.Contains(string(body), "owl says") || !strings.Contains(string(body), "fox says")) {
			text = "I was shown nothing"
		}
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"%s","choices":[{"index":0,"finish_reason":"stop","message":`+
			`{"role":"assistant","content":"%s"}}],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`, req.Model, text)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func mixed(url string, more string) string {
	return fmt.Sprintf(`
moa:
  references: [{model: owl, base_url: "%[1]s"}, {model: fox, base_url: "%[1]s", temperature: 1}, {model: lost, base_url: "%[1]s"}]
  aggregator: {model: chair, base_url: "%[1]s"}
  max_tokens: 1000
  retries: 0
%[2]s`, url, more)
}

// TestMixture plays episodes that ask a mixture of agents, one of which is down: recorded on the tape, counted and paid, and replayed
// without the models.
func TestMixture(t *testing.T) {
	var asked atomic.Int64
	url := council(t, &asked)
	const prices = `budget:
  prices: {owl: {input: 1, output: 1}, fox: {input: 1, output: 1}, lost: {input: 1, output: 1}, chair: {input: 1, output: 10}, scripted-oracle: {input: 0, output: 0}}
`
	file := write(t, "run.yaml", mixed(url, prices))
	var tasks strings.Builder
	for i := range 3 {
		fmt.Fprintf(&tasks, `{"id":"think-%d","prompt":"Think.","toolsets":["moa"],"verify":{"exact":"done"},"gold":[{"tool_calls":[`+
			`{"name":"mixture_of_agents","arguments":{"user_prompt":"What is %d?"}}]},{"content":"done"}]}`+"\n", i, i)
	}
	dataset := write(t, "think.jsonl", tasks.String())
	dir := t.TempDir()
	tape := filepath.Join(dir, "tape")
	play := plays(t, dir, "-f", file, "--dataset", dataset, "--policy", "oracle", "--max-tokens", "1000", "--sandbox", "local")
	recorded := play("recorded", "--record", tape, "--budget-usd", "1")
	probes := asked.Load() - 3*4
	seeds := map[string]bool{}
	for _, ep := range episodes(t, filepath.Join(dir, "recorded")) {
		if len(ep.Calls) != 1 || ep.CostUSD == nil || math.Abs(*ep.CostUSD-0.0042) > 1e-9 {
			t.Fatalf("cost %v, calls %+v", ep.CostUSD, ep.Calls)
		}
		call := ep.Calls[0]
		if !strings.HasPrefix(call.Result, `{"success":true,"response":"chair says `) ||
			!strings.HasSuffix(call.Result, `at 0.4","models_used":{"reference_models":["owl","fox"],"aggregator_model":"chair"}}`) {
			t.Errorf("result %s", call.Result)
		}
		var about struct {
			Asked []struct{ Asked, Answer, Failed string }
		}
		if err := json.Unmarshal(call.Source, &about); err != nil || len(about.Asked) != 4 || !strings.HasSuffix(about.Asked[0].Answer, "at 0.6") ||
			!strings.HasSuffix(about.Asked[1].Answer, "at 1") || about.Asked[2].Failed != "server" {
			t.Errorf("source %s, %v", call.Source, err)
		}
		seeds[about.Asked[0].Answer] = true
	}
	if len(seeds) != 3 || probes < 0 || probes > 4 {
		t.Errorf("%d different seeds, and %d requests beside the calls'", len(seeds), probes)
	}
	before := asked.Load()
	replayed := play("replayed", "--replay", tape)
	sameRows(t, recorded, replayed)
	if asked.Load() != before {
		t.Error("a replay asks the models")
	}
	if got := succeed(t, "tools", "call", "mixture_of_agents", `{"user_prompt":"What?"}`, "-f", file, "--sandbox", "local").out; !strings.Contains(got, `chair says`) {
		t.Errorf("tools call: %s", got)
	}
	// Without a model the dataset's own solutions end well all the same.
	succeed(t, "check", "-f", file, "--dataset", dataset, "--sandbox", "local")
}

// TestMixtureNotDeclared holds that a run without the section is told what to declare, and that a policy answers for the agent alone.
func TestMixtureNotDeclared(t *testing.T) {
	task := write(t, "t.jsonl", `{"id":"a","prompt":"p","toolsets":["moa"]}`)
	got := here(t, "run", "--dataset", task, "--policy", "noop", "--sandbox", "local")
	if got.code != exitUsage || !strings.Contains(got.errOut, "moa: {references: [{model: NAME}") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	file := write(t, "run.yaml", "moa: {references: [{model: a}], aggregator: {model: b}}\n")
	got = here(t, "run", "-f", file, "--dataset", task, "--policy", "noop", "--sandbox", "local")
	if got.code != exitUsage || !strings.Contains(got.errOut, "moa: model a needs base_url") || !strings.Contains(got.errOut, "moa: model b needs") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
}

// TestDistributionsWithMixture plays an episode of each distribution: with a mixture declared, none draws what is not there.
func TestDistributionsWithMixture(t *testing.T) {
	t.Parallel()
	file := write(t, "run.yaml", mixed(council(t, new(atomic.Int64)), ""))
	task := write(t, "t.jsonl", `{"id":"a","prompt":"p","gold":"g","verify":{"exact":"g"}}`)
	for _, name := range distributions.Names() {
		out := filepath.Join(t.TempDir(), "run")
		got := here(t, "run", "-f", file, "--dataset", task, "--distribution", name, "--policy", "oracle", "--samples", "3", "--sandbox", "local", "--out", out, "--quiet")
		if got.code != exitDone || strings.Contains(got.errOut, "available") {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.errOut)
		}
	}
}
