package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGroupsHaveOneToolList plays eight samples of each task with drawn toolsets, as GRPO wants groups of them, and holds the files
// of trainers to one tool list in each group: TRL's as a column, SkyRL's in the ids of the prompt. With draws of its own for each
// sample, groups have several.
func TestGroupsHaveOneToolList(t *testing.T) {
	const tasks, samples = 4, 8
	var rows strings.Builder
	for i := range tasks {
		fmt.Fprintf(&rows, `{"id": "task-%d", "prompt": "What is %d + 1?", "verify": {"number": %[3]d}, "gold": "%[3]d"}`+"\n", i, i, i+1)
	}
	dataset := write(t, "tasks.jsonl", rows.String())
	for draw, one := range map[string]bool{"task": true, "sample": false} {
		t.Run(draw, func(t *testing.T) {
			t.Parallel()
			file := writeRunFile(t, fmt.Sprintf("dataset: {path: %s}\nscripted: {policy: oracle}\nsandbox: {backend: local}\nmodel: {token_ids: true}\nsamples: %d\ntools: {distribution: development, draw: %s}\n",
				dataset, samples, draw))
			dir := t.TempDir()
			run := filepath.Join(dir, "run")
			succeed(t, "run", "-f", file, "--out", run, "--quiet")
			task := map[string]string{} // by the episode's id
			for _, ep := range episodes(t, run) {
				task[ep.ID] = ep.Key.Task
			}
			lists := map[string]map[string]map[string]int{"trl": {}, "skyrl": {}} // format → task → tool list → samples
			for format, of := range lists {
				for _, id := range task {
					of[id] = map[string]int{}
				}
				path := filepath.Join(dir, format)
				succeed(t, "export", "--run", run, "--to", format, "--out", path)
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if format == "trl" {
					for _, row := range lines[struct{ ID, Tools string }](t, string(text)) {
						of[task[row.ID]][row.Tools]++
					}
					continue
				}
				var file struct {
					Prompts      [][]int32 `json:"prompt_token_ids"`
					Trajectories []struct {
						Task string `json:"instance_id"`
					} `json:"trajectory_ids"`
				}
				if err := json.Unmarshal(text, &file); err != nil {
					t.Fatal(err)
				}
				for i, at := range file.Trajectories {
					of[at.Task][fmt.Sprint(file.Prompts[i])]++
				}
			}
			for format, of := range lists {
				all, mixed := map[string]bool{}, 0
				for id, group := range of {
					n := 0
					for list, times := range group {
						n, all[list] = n+times, true
					}
					if len(group) > 1 {
						mixed++
					}
					if n != samples || one && len(group) != 1 {
						t.Errorf("%s, %s: %d samples with %d tool lists", format, id, n, len(group))
					}
				}
				if len(of) != tasks || len(all) < 2 || !one && mixed == 0 {
					t.Errorf("%s: %d groups with %d tool lists, %d of them mixed", format, len(of), len(all), mixed)
				}
			}
		})
	}
}
