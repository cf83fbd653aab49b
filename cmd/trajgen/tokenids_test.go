package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/outputs/report"
)

// TestTokenIDsOfARun asks for token ids as a run file does, and holds a resume to them.
func TestTokenIDsOfARun(t *testing.T) {
	path := writeRunFile(t, "dataset: {path: bundled, max_tasks: 2}\nscripted: {policy: oracle}\nsandbox: {backend: local}\nmodel: {token_ids: true}\n")
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, "run", "-f", path, "--out", dir, "--quiet")
	var report report.Report
	if err := json.Unmarshal([]byte(succeed(t, "report", "--run", dir, "--json").out), &report); err != nil {
		t.Fatal(err)
	}
	if d := report.Drift; d == nil || d.Safe != 2 || d.Of != 2 || d.WithLogprobs != 2 {
		t.Errorf("token drift = %+v, want 2 safe rows of 2", d)
	}
	if got := here(t, "run", "--resume", "--out", dir, "--token-ids", "false", "--quiet"); got.code != exitUsage || !strings.Contains(got.errOut, "token_ids") {
		t.Errorf("resume without token ids: exit code %d: %s", got.code, got.errOut)
	}
	if got := here(t, "run", "-f", path, "--out", dir+"2", "--token-ids", "vlm"); got.code != exitUsage || !strings.Contains(got.errOut, "want one of auto, llamacpp, sglang, vllm") {
		t.Errorf("unknown server: exit code %d: %s", got.code, got.errOut)
	}
}
