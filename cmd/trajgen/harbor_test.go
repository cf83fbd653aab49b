package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// harborTask writes a task in Harbor's format.
func harborTask(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	harborConfig = "[environment]\nnetwork_mode = \"no-network\"\nmemory_mb = 256\nstorage_mb = 64\n[verifier]\ntimeout_sec = 30\nenv = {WANT = \"Hello\"}\n"
	honest       = "#!/bin/bash\n" + `r=0; [ "$(cat out.txt)" = "$WANT" ] && [ -e /tests/more/x ] && r=1; echo $r > /logs/verifier/reward.txt; echo "{\"reward\": $r, \"size\": 5}" > /logs/verifier/reward.json`
)

// TestHarbor plays task directories: solutions that work, doing nothing, agents that cheat and verifiers that break.
func TestHarbor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	task := func(name, verifier, agent string) {
		harborTask(t, filepath.Join(dir, name), map[string]string{
			"task.toml": harborConfig, "instruction.md": "Write the word Hello to out.txt.\n",
			"tests/test.sh": verifier, "tests/more/x": "", "solution/solve.sh": "#!/bin/bash\n" + agent + "\n",
		})
	}
	task("broken", "#!/bin/sh\n", "echo Hello > out.txt")
	task("left-behind", honest, `(setsid bash -c 'while sleep 0.002; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json; done' >/dev/null 2>&1 &)`)
	task("planted", "#!/bin/sh\n", "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt")
	task("solved", honest, `head -c 5 /solution/data/long > out.txt`)
	harborTask(t, filepath.Join(dir, "solved/solution/data"), map[string]string{"long": "Hello" + strings.Repeat("o", 1<<20)})
	harborTask(t, filepath.Join(dir, "steps"), map[string]string{
		"task.toml": harborConfig + "[[steps]]\nname = \"first\"\n[[steps]]\nname = \"second\"\n", "tests/more/x": "",
		"steps/first/instruction.md": "Write Hello to out.txt.", "steps/first/tests/test.sh": honest, "steps/first/solution/solve.sh": "echo Hello > out.txt",
		"steps/second/instruction.md": "Copy it to more.txt.", "steps/second/tests/test.sh": "cmp out.txt more.txt; echo $((1-$?)) > /logs/verifier/reward.txt", "steps/second/solution/solve.sh": "cp out.txt more.txt",
	})
	harborTask(t, filepath.Join(dir, "two-machines"), map[string]string{
		"task.toml": "", "instruction.md": "x", "tests/test.sh": "x", "environment/docker-compose.yaml": "services:\n  main: {image: x}\n  db: {image: y}\n",
	})
	want := map[string]map[string]string{
		"oracle": {"broken": "verifier_error", "left-behind": "failure", "planted": "verifier_error", "solved": "success", "steps": "success"},
		"noop":   {"broken": "verifier_error", "left-behind": "failure", "planted": "verifier_error", "solved": "failure", "steps": "failure"},
	}
	for policy, outcomes := range want {
		out := filepath.Join(t.TempDir(), "run")
		got := trajgen(t, "run", "--dataset", dir, "--policy", policy, "--out", out, "--skip-bad-rows", "--quiet")
		if got.code != 3 || !strings.Contains(got.errOut, "task two-machines (row 6): services db: the native sandbox is one machine and has none beside it: choose docker or podman with --sandbox") {
			t.Fatalf("%s: exit code %d: %s", policy, got.code, got.errOut)
		}
		played := episodes(t, out)
		if len(played) != len(outcomes) {
			t.Errorf("%s: %d episodes, want %d", policy, len(played), len(outcomes))
		}
		for _, ep := range played {
			outcome := outcomes[ep.Key.Task]
			if string(ep.Outcome) != outcome || (ep.Reward == nil) != (outcome == "verifier_error") {
				t.Errorf("%s of %s ended in %s, want %s: reward %v, %+v, %+v", policy, ep.Key.Task, ep.Outcome, outcome, ep.Reward, ep.Rewards, ep.Fault)
			}
			if ep.Key.Task == "solved" && (len(ep.Rewards) != 2 || ep.Rewards[1] != episode.Reward{Name: "reward_file.size", Value: 5}) {
				t.Errorf("%s of %s: rewards %+v, want the size beside", policy, ep.Key.Task, ep.Rewards)
			}
		}
	}
	if got := trajgen(t, "check", "--dataset", filepath.Join(dir, "solved"), "--sandbox", "local"); got.code != exitUsage || !strings.Contains(got.errOut, "has no root of its own") {
		t.Errorf("check on local: exit code %d, %s", got.code, got.errOut)
	}
}
