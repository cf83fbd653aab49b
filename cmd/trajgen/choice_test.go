package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/run"
)

// shownTasks returns the ids of the tasks that a run would play, in its order.
func shownTasks(t *testing.T, args ...string) (string, datasets.Seen) {
	t.Helper()
	got := succeed(t, append([]string{"datasets", "show", "--json", "--seed", "3"}, args...)...)
	var seen datasets.Seen
	if err := json.Unmarshal([]byte(got.out), &seen); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, task := range seen.First {
		ids = append(ids, task.ID)
	}
	return strings.Join(ids, " "), seen
}

// TestChoosingTasks holds that each step is taken, and that what was left out is said.
func TestChoosingTasks(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"train-00000-of-00002.jsonl": `{"id":"a","prompt":"1","verify":{"exact":"x"},"level":1}` + "\n" + `{"id":"b","prompt":"2","verify":{"exact":"x"},"level":2}`,
		"train-00001-of-00002.jsonl": `{"id":"c","prompt":"3","verify":{"exact":"x"},"level":2}`,
		"test-00000-of-00001.jsonl":  `{"id":"d","prompt":"4","verify":{"exact":"x"},"level":3}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := filepath.Join(dir, "*.jsonl")
	tests := []struct {
		args       []string
		want, said string
	}{
		{[]string{dir, "--split", "train"}, "a b c", ""},
		{[]string{all}, "d a b c", ""},
		{[]string{filepath.Join(dir, "train-*1-*"), filepath.Join(dir, "test-*")}, "c d", ""},
		{[]string{all, "--where", "level == 2"}, "b c", "of 4 tasks that were read, where left 2"},
		{[]string{all, "--shuffle", "--max-tasks", "3"}, "a d b", "of 4 tasks that were read, max_tasks left 3"},
		{[]string{all, "--stratify", "level", "--per-stratum", "1"}, "d a c", "stratify left 3"},
		{[]string{all, "--slice", "1:3"}, "a b", "slice left 2"},
		{[]string{all, "--parts", "x=0.5", "--parts", "y=0.5", "--use-part", "x"}, "a b c", "part left 3"},
	}
	for _, tt := range tests {
		ids, seen := shownTasks(t, tt.args...)
		if said := run.LeftOut(seen.Steps); ids != tt.want || !strings.Contains(said, tt.said) || tt.said == "" && said != "" {
			t.Errorf("%v: tasks %s, want %s; said %q, want %q", tt.args[1:], ids, tt.want, said, tt.said)
		}
	}
	refused := [][]string{
		{"--dataset", dir, "say --split test or train"},
		{"--dataset", all, "--where", "level > 5", "no task is left: where level > 5 took the last"},
		{"--dataset", all, "--where", "levl > 5", `no row has levl (did you mean "level"?) (have cwd, difficulty`},
		{"--dataset", all, "--where", "level >", "--slice", "x", "slice is"},
		{"--dataset", all, "--parts", "x=much", "is not a number"},
	}
	for _, args := range refused {
		got := here(t, append([]string{"run", "--policy", "noop", "--sandbox", "local"}, args[:len(args)-1]...)...)
		if want := args[len(args)-1]; got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: exit code %d: %s, want %q", args, got.code, got.errOut, want)
		}
	}
}

// TestChoiceOnResume holds that a run goes on with the same choice alone, and says which steps there were.
func TestChoiceOnResume(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	file := write(t, "run.yaml", `{scripted: {policy: noop}, sandbox: {backend: local}, dataset: {path: [bundled], where: "row < 6", parts: {train: 0.9, test: 0.1}, use_part: train, stratify: difficulty, max_tasks: 3}}`)
	succeed(t, "run", "-f", file, "--out", dir, "--quiet")
	if got := succeed(t, "report", "--run", dir, "--json"); !strings.Contains(got.out, `"bundled"`) {
		t.Errorf("the report does not name the dataset: %s", got.out)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil || !strings.Contains(string(log), `"step":"where","how":"row < 6","left":6`) {
		t.Errorf("log.jsonl does not say what where left (%v): %s", err, log)
	}
	succeed(t, "run", "--resume", "--out", dir, "--quiet")
	for flag, want := range map[string]string{"--where=row < 7": "where: was row < 6, now row < 7", "--use-part=test": "use_part: was train", "--max-tasks=4": "max_tasks: was 3", "--slice=1:": "slice: was (nothing)"} {
		if got := trajgen(t, "run", "--resume", "--out", dir, "--quiet", flag); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d: %s, want %q", flag, got.code, got.errOut, want)
		}
	}
}

// TestDatasetsShow holds what is printed of a dataset, and that broken rows are named.
func TestDatasetsShow(t *testing.T) {
	path := write(t, "a.csv", "id,prompt,level\na,Say   it,3\nb,,4\nc,x,\n")
	got := trajgen(t, "datasets", "show", path, "--n", "1")
	for _, want := range []string{"2 tasks", "a.csv  csv", "prompt            2", "level (metadata)  1", "row 0, task a", "user: Say it", "broken: ", "a.csv:3: there is no prompt"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in:\n%s", want, got.out)
		}
	}
	if got.code != exitUsage || !strings.Contains(got.errOut, "1 rows are broken") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	succeed(t, "datasets", "show", path, "--skip-bad-rows")
}
