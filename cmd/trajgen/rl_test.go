package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// rlRunFile declares the trainer that comes along as an example, and models of two skills.
func rlRunFile(t *testing.T) string {
	t.Helper()
	var tasks strings.Builder
	for i := range 4 {
		fmt.Fprintf(&tasks, `{"id":"sum-%d","prompt":"What is %d + 1?","toolsets":["none"],"verify":{"number":%d},"gold":[{"content":"%d"}]}`+"\n", i, i, i+1, i+1)
	}
	environment := write(t, "sums.jsonl", tasks.String())
	bandit, err := filepath.Abs("../../examples/rl/bandit.py")
	if err != nil {
		t.Fatal(err)
	}
	models := ""
	for name, skill := range map[string]float64{"good": 1, "bad": 0} {
		server, err := scripted.New(scripted.Config{Policy: "noisy", Skill: skill, Model: name, APIKey: "a-key-of-models"})
		if err != nil {
			t.Fatal(err)
		}
		url, err := server.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		learn(t, server, environment)
		models += fmt.Sprintf("    %s: {model: %s, base_url: %q, api_key_env: MODELS_KEY}\n", name, name, url)
	}
	t.Setenv("MODELS_KEY", "a-key-of-models")
	return write(t, "run.yaml", `
sandbox: {backend: local}
rl:
  environments: {sums: {dataset: "`+environment+`", description: adding one}}
  trainer: {command: [python3, "`+bandit+`"], ready: {log: "^ready$"}}
  fields:
    skill: {type: number, default: 0.2, min: 0, max: 1}
    width: {type: number, default: 0.2, min: 0, max: 1}
    steps: {type: int, default: 100, min: 1, max: 1000}
    group_size: {type: int, default: 8, min: 1, max: 64}
  locked: {learning_rate: 1}
  check_every: 1ms
  models:
`+models)
}

// rlCall makes calls by hand, and returns their results.
func rlCall(t *testing.T, file, script string) (results []map[string]any) {
	t.Helper()
	calls := write(t, "calls.jsonl", script)
	got := succeed(t, "tools", "call", "-f", file, "--script", calls)
	for line := range strings.Lines(got.out) {
		var call struct{ Result string }
		var result map[string]any
		err := json.Unmarshal([]byte(line), &call)
		if err == nil {
			err = json.Unmarshal([]byte(call.Result), &result)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		results = append(results, result)
	}
	return results
}

// TestTraining trains the scripted model's skill in processes of its own, with calls of several commands.
func TestTraining(t *testing.T) {
	file := rlRunFile(t)
	dir := t.TempDir()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	file = write(t, "run.yaml", strings.Replace(string(data), "rl:\n", "rl:\n  dir: "+dir+"\n", 1))
	sum := sha256.Sum256([]byte(" 0 1 0")) // by hand, the first
	id := hex.EncodeToString(sum[:4])
	results := rlCall(t, file, `{"name":"rl_select_environment","arguments":{"name":"sums"}}
{"name":"rl_edit_config","arguments":{"field":"steps","value":2}}
{"name":"rl_start_training","arguments":{}}
`)
	if results[2]["status"] != "running" || results[2]["run_id"] != id {
		t.Fatalf("%v", results)
	}
	waitFor(t, func() bool {
		got := rlCall(t, file, `{"name":"rl_check_status","arguments":{"run_id":"`+id+`"}}`)[0]
		if got["status"] == "failed" || got["status"] == "died" {
			t.Fatalf("%v", got)
		}
		return got["status"] == "finished"
	})
	got := rlCall(t, file, `{"name":"rl_get_results","arguments":{"run_id":"`+id+`"}}`)[0]
	last := got["final_metrics"].(map[string]any)
	if got["points"] != 2.0 || last["step"] != 2.0 || last["skill"].(float64) < 0.55 || last["reward_mean"].(float64) <= 0.2 {
		t.Errorf("it did not learn: %v", got)
	}
}

// TestTrainingEpisode plays an episode that tries an environment, starts a training and leaves it: the run stops it. What the models
// were asked is in the row.
func TestTrainingEpisode(t *testing.T) {
	file := rlRunFile(t)
	key := episode.Key{Task: "train"}.ID()
	sum := sha256.Sum256([]byte(key + " 1 1"))
	id := hex.EncodeToString(sum[:4])
	calls := []string{
		`{"name":"rl_list_environments","arguments":{}}`, `{"name":"rl_select_environment","arguments":{"name":"sums"}}`,
		`{"name":"rl_test_inference","arguments":{"num_steps":2,"group_size":3}}`, `{"name":"rl_start_training","arguments":{}}`,
		`{"name":"rl_check_status","arguments":{"run_id":"` + id + `"}}`, `{"name":"rl_list_runs","arguments":{}}`,
	}
	dataset := write(t, "train.jsonl", `{"id":"train","prompt":"Train it.","toolsets":["rl"],"verify":{"exact":"done"},"gold":[{"tool_calls":[`+
		strings.Join(calls, `]},{"tool_calls":[`)+`]},{"content":"done"}]}`+"\n")
	dir := filepath.Join(t.TempDir(), "run")
	got := succeed(t, "run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--twin", "record", "--out", dir)
	if !strings.Contains(got.errOut, "run on this machine") {
		t.Errorf("without a warning: %s", got.errOut)
	}
	ep := episodes(t, dir)[0]
	if ep.Reward == nil || *ep.Reward != 1 || len(ep.Calls) != len(calls) {
		t.Fatalf("reward %v, %d calls", ep.Reward, len(ep.Calls))
	}
	for i, want := range []string{`"count":1`, `"environment":"sums"`,
		`{"model":"good","accuracy":1,"reward_mean":1,"steps":2,"completions":6,"errors":0}`, `"status":"running"`, `"status":"running"`, `"run_id":"` + id} {
		if !strings.Contains(ep.Calls[i].Result, want) || !ep.Calls[i].Runner {
			t.Errorf("%s is %s, want %s in it", calls[i], ep.Calls[i].Result, want)
		}
	}
	if asked := ep.Calls[2].Inquiries(); len(asked) != 2 || asked[1].Asked != "good" || asked[1].Usage.Completion == 0 {
		t.Errorf("asked %+v", asked)
	}
	for name, want := range map[string]string{"training.json": `"stopped": true`, "log.txt": "ready"} {
		if text, err := os.ReadFile(filepath.Join(dir, "trainings", id, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range processes {
		if environ, _ := os.ReadFile(each); strings.Contains(string(environ), "TRAJGEN_RL_TRAINING="+dir) {
			t.Errorf("%s outlives the run", each)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "trainings", ".try-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if said := succeed(t, "verify", "--run", dir).out; !strings.Contains(said, "nothing differs") {
		t.Errorf("verify:\n%s", said)
	}

	// A recording trains nothing.
	os.Unsetenv("MODELS_KEY")
	replayed := filepath.Join(t.TempDir(), "replayed")
	got = succeed(t, "run", "-f", file, "--dataset", dataset, "--policy", "oracle", "--twin", "replay", "--twin-recording", dir, "--out", replayed)
	sameRows(t, twins(t, timeless(t, dir)), twins(t, timeless(t, replayed)))
	if _, err := os.Stat(filepath.Join(replayed, "trainings")); err == nil || strings.Contains(got.errOut, "run on this machine") {
		t.Errorf("a replay trains: %v, %s", err, got.errOut)
	}
}
