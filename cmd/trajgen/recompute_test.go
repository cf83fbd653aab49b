package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecompute holds every number of report and diff against what scripts/recompute.py makes of the rows. Some rewards are
// parts, and the verifiers of some tasks break when the work was not done.
func TestRecompute(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // make test installs it
	}
	var tasks strings.Builder
	for i := range 12 {
		fmt.Fprintf(&tasks, `{"id":"t%d","prompt":"make the file done","tags":["%d"],"difficulty":"easy","gold":{"command":"touch done"},`+
			`"verify":{"command":"if [ -e done ]; then echo %s; else echo %s; fi","reward":"stdout"}}`+"\n",
			i, i%5, []string{"1", "1", "0.5"}[i%3], []string{"0", "0", "0.25", "broken"}[i%4])
	}
	dataset, dir := write(t, "tasks.jsonl", tasks.String()), t.TempDir()
	ask := func(name string, args ...string) string {
		t.Helper()
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, []byte(succeed(t, append(args, "--json")...).out), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	recompute := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), python, append([]string{"../../scripts/recompute.py"}, args...)...).CombinedOutput()
		return string(out), err
	}
	var runs, rows []string
	for _, skill := range []string{"0.8", "0.3"} {
		out := filepath.Join(dir, skill)
		trajgen(t, "run", "--dataset", dataset, "--policy", "noisy", "--skill", skill, "--samples", "3", "--sandbox", "local", "--out", out, "--quiet")
		succeed(t, "export", "--run", out, "--to", "jsonl", "--out", out+".jsonl")
		runs, rows = append(runs, out), append(rows, out+".jsonl")
		said, err := recompute("report", ask("report-"+skill, "report", out), out+".jsonl")
		if err != nil {
			t.Errorf("report of skill %s: %v\n%s", skill, err, said)
		}
	}
	document := ask("diff", "diff", runs[0], runs[1])
	if said, err := recompute("diff", document, rows[0], rows[1]); err != nil {
		t.Errorf("diff: %v\n%s", err, said)
	}
	text, err := os.ReadFile(document)
	if err != nil || !strings.Contains(string(text), `"unresolved"`) {
		t.Errorf("nothing is unresolved (%v):\n%s", err, text)
	}
	if said, err := recompute("diff", document, rows[1], rows[0]); err == nil || !strings.Contains(said, ".success_rate.change.mean") {
		t.Errorf("the other way round: %v\n%s", err, said)
	}
}
