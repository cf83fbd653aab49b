package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/run/check"
	"trajgen/pipeline/run/proof"
)

// auditFile is a dataset of the audit's: weak.jsonl has tasks whose tag is the attack that they fall to, sound.jsonl has tasks
// that none may pass.
func auditFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "pipeline", "run", "check", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// audit returns what the audit of a file finds. It holds that the verdicts are kept.
func audit(t *testing.T, name string, args ...string) (check.Proof, result) {
	t.Helper()
	kept := proof.Store{Dir: t.TempDir()}
	got := trajgen(t, append([]string{"audit", "--json", "--disk", "16M", "--dataset", auditFile(t, name), "--proof-dir", kept.Dir}, args...)...)
	var proven check.Proof
	if err := json.Unmarshal([]byte(got.out), &proven); err != nil {
		t.Fatalf("audit %v: %v: %s", args, err, got.errOut)
	}
	for _, verdict := range proven.Verdicts {
		if known, err := kept.Get(verdict.Digest); err != nil || !cmp.Equal(known, &verdict.Proof) {
			t.Errorf("of %s the proof %+v is kept, %v, want %+v", verdict.Task, known, err, verdict.Proof)
		}
	}
	return proven, got
}

// planted are the weaknesses of the tasks in weak.jsonl.
func planted(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(auditFile(t, "weak.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	attacks := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var task struct {
			ID   string
			Tags []string
		}
		if err := json.Unmarshal([]byte(line), &task); err != nil {
			t.Fatal(err)
		}
		attacks[task.ID] = task.Tags[0]
	}
	return attacks
}

// TestAuditFindsWeaknesses holds that each of 24 weaknesses, two to an attack, is found by its attack.
func TestAuditFindsWeaknesses(t *testing.T) {
	t.Parallel()
	attacks := planted(t)
	if want := 2 * len(check.Attacks()); len(attacks) != want {
		t.Fatalf("%d weak tasks, want %d", len(attacks), want)
	}
	for _, attack := range check.Attacks() {
		proof, got := audit(t, "weak.jsonl", "--sandbox", "native", "--attacks", attack, "--where", fmt.Sprintf("tags[0] == %q", attack))
		if got.code != exitFailed || proof.Tasks != 2 || proof.Failing() != 2 {
			t.Errorf("%s: exit code %d, %d of %d tasks fail, want 2 of 2", attack, got.code, proof.Failing(), proof.Tasks)
		}
		for _, verdict := range proof.Verdicts {
			if attacks[verdict.Task] != attack || !slices.Contains(verdict.Passed, attack) {
				t.Errorf("%s falls to %v, want %s", verdict.Task, verdict.Passed, attack)
			}
			if verdict.Gold == nil || *verdict.Gold != 1 || verdict.Digest == "" {
				t.Errorf("%s: %+v, want a reference solution that scores, and a digest", verdict.Task, verdict)
			}
		}
	}
}

// TestAuditAccusesNoSoundTask also has tasks where an attack does the very work, such as one to make an empty file.
func TestAuditAccusesNoSoundTask(t *testing.T) {
	t.Parallel()
	proof, got := audit(t, "sound.jsonl", "--sandbox", "native")
	if got.code != 0 || proof.Tasks != 24 || len(proof.Problems) > 0 {
		t.Errorf("exit code %d, %d tasks, problems %+v", got.code, proof.Tasks, proof.Problems)
	}
}

// TestAuditWithoutIsolation keeps to what an attack may do where the sandbox shares the machine: it kills nothing and fills no disk.
func TestAuditWithoutIsolation(t *testing.T) {
	t.Parallel()
	attacks := planted(t)
	tried := []string{"stop-verifier", "git-hooks", "fill-disk"}
	proof, _ := audit(t, "weak.jsonl", "--sandbox", "local", "--attacks", strings.Join(tried, ","),
		"--where", `tags[0] in ["do-nothing", "stop-verifier", "git-hooks", "fill-disk"]`)
	found := map[string]int{}
	for _, verdict := range proof.Verdicts {
		for _, attack := range verdict.Passed {
			if attacks[verdict.Task] == attack {
				found[attack]++
			}
		}
	}
	if want := map[string]int{check.DoNothing: 2, "stop-verifier": 1, "git-hooks": 2}; !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for _, tally := range proof.Attacks {
		if tally.Name == "fill-disk" && tally.Tried != 0 {
			t.Errorf("%s was tried at %d tasks where the disk has no limit", tally.Name, tally.Tried)
		}
	}
	if got := trajgen(t, "audit", "--dataset", auditFile(t, "weak.jsonl"), "--attacks", "stop-verifer"); got.code != exitUsage || !strings.Contains(got.errOut, `did you mean "stop-verifier"?`) {
		t.Errorf("exit code %d, stderr %q, want the name that was meant", got.code, got.errOut)
	}
}

// TestAuditSaysWhatScores lists a task where a cheat gets a part, too, and fails only those where one gets all.
func TestAuditSaysWhatScores(t *testing.T) {
	t.Parallel()
	dataset := write(t, "tasks.jsonl", `{"id": "half", "prompt": "Write a.txt and b.txt.", "verify": [{"command": "test -f a.txt"}, {"command": "grep -qx one b.txt"}], "gold": {"command": "echo one > a.txt; echo one > b.txt"}}
{"id": "whole", "prompt": "Write c.txt.", "verify": {"command": "test -f c.txt"}, "gold": {"command": "echo one > c.txt"}}
{"id": "object", "prompt": "Write an object with an age to f.json.", "verify": {"json": {"file": "f.json", "equal": {"age": 3}}}, "gold": {"command": "echo '{\"age\": 3}' > f.json"}}
{"id": "empty", "prompt": "Make d.txt, empty.", "verify": {"command": "test -f d.txt"}, "gold": {"command": "touch d.txt"}}
`)
	got := trajgen(t, "audit", "--dataset", dataset, "--sandbox", "local", "--attacks", "empty-files", "--proof-dir", t.TempDir())
	want := `whole: empty-files must not score (the agent makes the expected files, empty), got 1 (success)
  answered

task   gold  noop  attacks that score
half   1     0     empty-files (0.5)
whole  1     0     empty-files

attack       tasks  passed  the agent
do-nothing   4      0       declines
empty-files  3      1       makes the expected files, empty

4 tasks: 1 fail, 0 without a reference solution, 0 without a verifier
`
	if got.code != exitFailed || got.out != want {
		t.Errorf("exit code %d, %s", got.code, cmp.Diff(want, got.out))
	}
}
