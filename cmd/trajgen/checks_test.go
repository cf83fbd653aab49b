package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/reward"
	"trajgen/pipeline/run/check"
)

// TestCheckKinds proves a task for each kind of check: its solution scores 1, and doing nothing scores 0.
func TestCheckKinds(t *testing.T) {
	t.Parallel()
	const run = `"gold": [{"tool_calls": [{"name": "terminal", "arguments": {"command": "echo '{\"n\": 3}' > out.json"}}]}, {"content": "done"}]`
	dataset := write(t, "checks.jsonl", strings.Join([]string{
		`{"id": "exact", "prompt": "Which city?", "verify": {"exact": ["Paris", "City of Light"], "case": "ignore", "trim": "all"}, "gold": "city of  light"}`,
		`{"id": "contains", "prompt": "Name two.", "verify": {"contains": ["red", "blue"]}, "gold": "blue and red"}`,
		`{"id": "number", "prompt": "How far?", "verify": {"number": 3.2, "unit": "km", "tolerance": "1%"}, "gold": "It is 3190 m."}`,
		`{"id": "regex", "prompt": "Which version?", "verify": {"regex": "v2"}, "gold": "v2"}`,
		`{"id": "json", "prompt": "As JSON?", "verify": {"json": {"schema": {"required": ["n"]}, "equal": {"n": 3}}}, "gold": "{\"n\": 3.0}"}`,
		`{"id": "json of a file", "prompt": "Into out.json.", "verify": {"json": {"file": "out.json", "equal": {"/n": 3}}}, ` + run + `}`,
		`{"id": "similar", "prompt": "What does it say?", "verify": {"similar": "The quick brown fox", "measure": "rouge_l", "threshold": 0.6}, "gold": "a quick brown dog"}`,
		`{"id": "python", "prompt": "Call a tool.", "verify": {"python": "score.py"}, ` + run + `}`,
		`{"id": "command", "prompt": "Say done, after a tool.", "verify": {"command": "grep -q done \"$ANSWER_FILE\" && grep -q '\"tool_calls\"' \"$CONVERSATION_FILE\" && grep -q terminal \"$CALLS_FILE\""}, ` + run + `}`,
	}, "\n"))
	scorer := "def score(answer, conversation, calls):\n    return float(answer == 'done' and calls[0]['name'] == 'terminal' and conversation[-1]['content'] == 'done')\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(dataset), "score.py"), []byte(scorer), 0o600); err != nil {
		t.Fatal(err)
	}
	got := succeed(t, "check", "--dataset", dataset, "--json")
	var result check.Proof
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatal(err)
	}
	if result.Tasks != 9 || len(result.NoGold)+len(result.NoVerify)+len(result.Problems) > 0 {
		t.Errorf("check: %s", got.out)
	}
	// Those of sites, homes and messages are tried with them, and those of command's tests with the bundled tasks.
	if kinds := len(reward.Kinds()); kinds != 13 {
		t.Errorf("%d kinds: does each have a task here?", kinds)
	}
	succeed(t, "run", "--dataset", dataset, "--policy", "oracle", "--out", filepath.Join(t.TempDir(), "run"), "--quiet")
}

// TestScorerIsPartOfTheExperiment resumes a run after its scorer has changed.
func TestScorerIsPartOfTheExperiment(t *testing.T) {
	t.Parallel()
	dataset := write(t, "d.jsonl", `{"id": "a", "prompt": "x", "verify": {"python": "score.py"}, "gold": "y"}`)
	scorer, out := filepath.Join(filepath.Dir(dataset), "score.py"), filepath.Join(t.TempDir(), "run")
	play := func(code string, more ...string) result {
		if err := os.WriteFile(scorer, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		return trajgen(t, append([]string{"run", "--dataset", dataset, "--policy", "oracle", "--out", out, "--quiet"}, more...)...)
	}
	if got := play("def score(*said): return 1\n"); got.code != 0 {
		t.Fatalf("run: %+v", got)
	}
	if got := play("def score(*said): return 0\n", "--resume"); got.code == 0 || !strings.Contains(got.errOut, "scorers: was") {
		t.Errorf("with another scorer: %+v", got)
	}
}
