package main

import (
	"fmt"
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
