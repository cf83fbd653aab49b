package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestVerifierImageAhead has a model that answers only when the image of the verifier is there.
func TestVerifierImageAhead(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "images")
	programsOf(t, filepath.Join(dir, "root"), "bash", "sh", "chmod", "cat")
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY root /\nWORKDIR /w\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := build(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		listed := ""
		if !strings.Contains(string(body), "Be judged elsewhere.") { // it is the client's first look
			listed = "built:"
		}
		for end := time.Now().Add(time.Minute); !strings.Contains(listed, "built:"); {
			out, err := exec.Command(program, "image", "list", "--image-dir", store).Output()
			if listed = string(out); err != nil || time.Now().After(end) {
				t.Errorf("no image was built before the model answered: %v", err)
				break
			}
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"done"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`)
	}))
	t.Cleanup(server.Close)
	rows := fmt.Sprintf(`{"id":"a","prompt":"Be judged elsewhere.","verify":{"command":"test $PWD = /w","verifier":{"build":{"dir":%q}}}}`+"\n", dir)
	out := filepath.Join(t.TempDir(), "run")
	got := finish(t, exec.Command(program, "run", "--dataset", write(t, "tasks.jsonl", rows), "--model", "m", "--base-url", server.URL, "--image-dir", store, "--out", out, "--toolsets", "none", "--quiet"))
	all := episodes(t, out)
	if len(all) != 1 || all[0].Outcome != episode.Success {
		t.Errorf("exit code %d, %d episodes, want one that succeeds\n%s", got.code, len(all), got.errOut)
	}
}
