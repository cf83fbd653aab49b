package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/distributions"
	"trajgen/pipeline/episode"
)

// TestResumeOfDrawsWithoutTools holds that a run is not refused that an earlier version has begun.
func TestResumeOfDrawsWithoutTools(t *testing.T) {
	path := write(t, "mine.yaml", "name: mine\ntoolsets: {terminal: 40, moa: 60}\n")
	d, err := distributions.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	shell := func(seed uint64, sample int) bool {
		draw := d.Sample(episode.Key{Seed: seed, Task: "a", Sample: sample}.Rand("toolsets"))
		return strings.Contains(strings.Join(draw.Toolsets, " "), "terminal")
	}
	seed := uint64(0)
	for !shell(seed, 0) || shell(seed, 1) {
		seed++
	}
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", write(t, "a.jsonl", `{"id": "a", "prompt": "p"}`), "--policy", "noop", "--sandbox", "local", "--seed", fmt.Sprint(seed), "--distribution", path, "--draw", "sample", "--out", dir, "--quiet"}
	if got := here(t, append(args, "--samples", "2")...); got.code != exitUsage || !strings.Contains(got.errOut, "distribution mine: 1 episodes would draw only toolsets without an available tool (moa)") {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
	if got := here(t, args...); got.code != exitDone {
		t.Errorf("without that sample: exit code %d, %s", got.code, got.errOut)
	}
	if got := here(t, append(args, "--samples", "2", "--resume")...); got.code != exitErrors || !strings.Contains(got.errOut, "without an available tool (moa)") {
		t.Errorf("resumed: exit code %d, %s", got.code, got.errOut)
	}
}

// TestGroups plays 8 samples of each task: a group has one tool list, with draw: task; and as before in a run directory that an
// older version began, which says nothing of it.
func TestGroups(t *testing.T) {
	tasks := write(t, "tasks.jsonl", strings.Repeat(`{"prompt": "p", "gold": "g", "verify": {"exact": "g"}}`+"\n", 6))
	play := func(dir string, flags ...string) {
		succeed(t, append([]string{"run", "--policy", "noisy", "--sandbox", "local", "--dataset", tasks, "--distribution", workbench(t), "--out", dir, "--quiet"}, flags...)...)
	}
	lists := func(dir string) (most int, all map[string]bool) {
		out := filepath.Join(t.TempDir(), "groups.jsonl")
		succeed(t, "export", "--run", dir, "--to", "jsonl", "--out", out)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		groups := map[int]map[string]bool{}
		all = map[string]bool{}
		for line := range strings.Lines(string(data)) {
			var row struct {
				Row   int             `json:"row"`
				Tools json.RawMessage `json:"tools"`
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if groups[row.Row] == nil {
				groups[row.Row] = map[string]bool{}
			}
			groups[row.Row][string(row.Tools)], all[string(row.Tools)] = true, true
			most = max(most, len(groups[row.Row]))
		}
		return most, all
	}
	byTask := filepath.Join(t.TempDir(), "task")
	play(byTask, "--samples", "8")
	if most, all := lists(byTask); most != 1 || len(all) < 2 {
		t.Errorf("a group has %d tool lists, and there are %d in all; want 1, and several", most, len(all))
	}
	older := filepath.Join(t.TempDir(), "older")
	play(older, "--samples", "1", "--draw", "sample")
	path := filepath.Join(older, "run.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(data), `"draw": "sample",`, "", 1)
	if err := os.WriteFile(path, []byte(without), 0o644); err != nil || without == string(data) {
		t.Fatalf("run.json does not say how it draws: %v", err)
	}
	succeed(t, "run", "--resume", "--out", older, "--samples", "8", "--quiet")
	if most, _ := lists(older); most < 2 {
		t.Error("an older run went on with other draws than it began with")
	}
	if got := here(t, "run", "--resume", "--out", older, "--draw", "task", "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "draw: was (nothing), now task") {
		t.Errorf("resumed with other draws: exit code %d, %s", got.code, got.errOut)
	}
	report := succeed(t, "report", "--run", byTask, "--where", "group.n == 8 and advantage > 0").out
	if !strings.Contains(report, "group.n == 8 and advantage > 0") {
		t.Errorf("the report does not say what it counts: %s", report)
	}
	if got := here(t, "report", "--run", byTask, "--where", "group.men > 0"); got.code != exitUsage || !strings.Contains(got.errOut, `did you mean "group.mean"?`) {
		t.Errorf("exit code %d, %s", got.code, got.errOut)
	}
}

// TestResumeFromAnotherFolder finds what the run file names by relative paths.
func TestResumeFromAnotherFolder(t *testing.T) {
	began := put(t, map[string]string{
		"a.jsonl":   `{"id": "a", "prompt": "p", "gold": "g", "verify": {"exact": "g"}}` + "\n" + `{"id": "b", "prompt": "p", "gold": "g", "verify": {"exact": "g"}}`,
		"mine.yaml": "name: mine\ntoolsets: {terminal: 100}\n", "system.txt": "Be brief.",
	})
	t.Chdir(began)
	got := here(t, "run", "--dataset", "*.jsonl", "--distribution", "./mine.yaml", "--system-prompt", "system.txt", "--policy", "oracle", "--sandbox", "local", "--max-tasks", "1", "--out", "runs/one", "--quiet")
	if got.code != exitDone {
		t.Fatalf("exit code %d, %s", got.code, got.errOut)
	}
	dir := ""
	for range 2 { // the second time by what the first has written down
		elsewhere := t.TempDir()
		t.Chdir(elsewhere)
		var err error
		if dir, err = filepath.Rel(elsewhere, filepath.Join(began, "runs/one")); err != nil {
			t.Fatal(err)
		}
		if got := here(t, "run", "--resume", "--out", dir, "--max-tasks", "2", "--quiet"); got.code != exitDone {
			t.Fatalf("resumed: exit code %d, %s", got.code, got.errOut)
		}
	}
	if all := episodes(t, dir); len(all) != 2 {
		t.Errorf("%d episodes, want 2", len(all))
	}
}
