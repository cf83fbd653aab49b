package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/outputs/gate"
)

// saidTasks are tasks whose answer is said at once.
func saidTasks(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"t%d","prompt":"Say done %d.","verify":{"exact":"done"},"gold":[{"content":"done"}]}`+"\n", i, i)
	}
	return text.String()
}

// judgedBy runs gate and returns its result and exit code.
func judgedBy(t *testing.T, args ...string) (r gate.Result, code int) {
	t.Helper()
	got := trajgen(t, append([]string{"gate", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("gate %v: exit code %d, %s%s", args, got.code, got.out, got.errOut)
	}
	return r, got.code
}

// TestGateOfFinishedRuns compares runs of agents of known skill.
func TestGateOfFinishedRuns(t *testing.T) {
	t.Parallel()
	dir, tasks := t.TempDir(), write(t, "d.jsonl", saidTasks(15))
	play := func(name string, skill, seed string, more ...string) string {
		out := filepath.Join(dir, name)
		succeed(t, append([]string{"run", "--dataset", tasks, "--policy", "noisy", "--skill", skill, "--seed", seed, "--samples", "8", "--sandbox", "local", "--quiet", "--out", out}, more...)...)
		return out
	}
	base, same, worse := play("base", "0.7", "1"), play("same", "0.7", "2"), play("worse", "0.3", "3")
	tests := []struct {
		name      string
		candidate string
		flags     []string
		verdict   gate.Verdict
		code      int
		reason    string
	}{
		{"nothing changed", same, []string{"--margin", "0.2", "--changes", "scripted"}, gate.Pass, 0, ""},
		{"worse", worse, []string{"--margin", "0.2", "--changes", "model,scripted"}, gate.Fail, 4, ""},
		{"too few plays", same, []string{"--margin", "0.01", "--changes", "scripted"}, gate.Inconclusive, 6, "budget"},
		{"what changed is not named", worse, nil, gate.Broken, 7, "the arms differ in policy: was noisy skill=0.7, now noisy skill=0.3"},
		{"another dataset", base, []string{"--changes", "dataset"}, gate.Broken, 7, "changes names dataset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, code := judgedBy(t, append([]string{"--base", base, "--candidate", tt.candidate}, tt.flags...)...)
			if r.Verdict != tt.verdict || code != tt.code || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("verdict %s (%s), exit code %d, want %s (%s), %d", r.Verdict, r.Reason, code, tt.verdict, tt.reason, tt.code)
			}
		})
	}

	one := play("one", "0.7", "1", "--samples", "1")
	if got := trajgen(t, "gate", "--base", one, "--candidate", one); got.code != exitUsage || !strings.Contains(got.errOut, "needs two of each task") {
		t.Errorf("one play of each task: exit code %d, %s", got.code, got.errOut)
	}
	fewer := play("fewer", "0.7", "1", "--max-tasks", "5")
	if got := trajgen(t, "gate", "--base", base, "--candidate", fewer); got.code != exitUsage || !strings.Contains(got.errOut, "played other tasks") {
		t.Errorf("other tasks: exit code %d, %s", got.code, got.errOut)
	}
	segments, err := filepath.Glob(filepath.Join(same, "journal", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments of %s: %v, %v", same, segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0xff
	if err := os.WriteFile(segments[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, code := judgedBy(t, "--base", base, "--candidate", same, "--changes", "scripted"); r.Verdict != gate.Broken || code != 7 {
		t.Errorf("a damaged journal: %+v, exit code %d, want BROKEN and 7", r, code)
	}
}
