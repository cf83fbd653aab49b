package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// TestVerifierImage has agents that are root of an image judged in a fork of it, and in another sandbox of the same image.
func TestVerifierImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programsOf(t, filepath.Join(dir, "root"), "bash", "sh", "grep", "cat", "chmod")
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY root /\nWORKDIR /w\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := fmt.Sprintf(`{"dir": %q}`, dir)
	const (
		plain = "grep -q 42 out.txt"
		login = `bash -l -c "grep -q 42 out.txt"`
		work  = "echo 42 > out.txt"
		cheat = `printf '#!/usr/bin/bash\nexit 0\n' > /usr/bin/grep; chmod 755 /usr/bin/grep`
		shell = "[[ -d /etc ]] && echo 'exit 0' > /etc/profile"
	)
	other := fmt.Sprintf(`{"build": %s, "artifacts": ["out.txt"]}`, build)
	tests := []struct {
		name, agent, check, verifier string
		want                         episode.Outcome
	}{
		{"work", work, plain, `{}`, episode.Success},
		{"work-elsewhere", work, plain, other, episode.Success},
		{"start-up", shell, login, `{}`, episode.Failure},
		{"start-up-same", shell, login, `{"sandbox": "same"}`, episode.Success},
		{"program", cheat, plain, `{}`, episode.Success}, // which only another image keeps off
		{"program-elsewhere", cheat, plain, other, episode.Failure},
	}
	var rows strings.Builder
	want := map[string]episode.Outcome{}
	for _, tt := range tests {
		fmt.Fprintf(&rows, `{"id":%q,"prompt":"x","build":%s,"gold":{"command":%q},"verify":{"command":%q,"verifier":%s}}`+"\n", tt.name, build, tt.agent, tt.check, tt.verifier)
		want[tt.name] = tt.want
	}
	out := filepath.Join(t.TempDir(), "run")
	got := trajgen(t, "run", "--dataset", write(t, "tasks.jsonl", rows.String()), "--policy", "oracle", "--image-dir", filepath.Join(t.TempDir(), "images"), "--out", out, "--toolsets", "terminal", "--quiet")
	all := episodes(t, out)
	if len(all) != len(tests) {
		t.Fatalf("%d episodes, want %d: %s", len(all), len(tests), got.errOut)
	}
	for _, ep := range all {
		if ep.Outcome != want[ep.Key.Task] {
			t.Errorf("%s: %s, %+v, %+v, want %s", ep.Key.Task, ep.Outcome, ep.Rewards, ep.Fault, want[ep.Key.Task])
		}
	}
}
