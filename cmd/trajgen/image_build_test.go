package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
)

// programsOf copies programs of this machine, with the libraries that they need, to a directory that becomes an image's root.
func programsOf(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := "/usr/bin/" + name
		libraries, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", path, err)
		}
		for _, file := range append(strings.Fields(string(libraries)), path) {
			if !strings.HasPrefix(file, "/") {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// buildable is a dataset of tasks with Dockerfiles: one works, one fails and two are the same.
func buildable(t *testing.T) (dataset string) {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	for name, text := range map[string]string{
		"works": "FROM scratch\nCOPY root /\nENV WORD=built\nWORKDIR /w\nRUN [\"/usr/bin/bash\", \"-c\", \"echo $WORD > /word\"]\n",
		"fails": "FROM scratch\nCOPY root /\nRUN [\"/usr/bin/bash\", \"-c\", \"echo these words; exit 3\"]\n",
	} {
		programsOf(t, filepath.Join(dir, name, "root"), "bash", "cat", "sh")
		if err := os.WriteFile(filepath.Join(dir, name, "Dockerfile"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for id, name := range map[string]string{"a": "works", "b": "fails", "c": "works"} {
		build, err := json.Marshal(episode.Build{Dir: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rows, `{"id":%q,"prompt":"x","build":%s,"gold":[{"content":"done"}],"verify":{"command":"test \"$(cat /word)\" = built && test $PWD = /w"}}`+"\n", id, build)
	}
	dataset = filepath.Join(dir, "tasks.jsonl")
	if err := os.WriteFile(dataset, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// TestImageBuild builds what a dataset wants, plays it, and holds that a failed build is a fault of its task alone.
func TestImageBuild(t *testing.T) {
	t.Parallel()
	dataset, store := buildable(t), filepath.Join(t.TempDir(), "images")
	works := filepath.Join(filepath.Dir(dataset), "works")
	program := func(args ...string) result { return finish(t, exec.Command(build(t), args...)) }
	var report struct {
		Built, Failed int
		Reasons       map[string]int
		Images        []struct{ Dir, Image, Error string }
	}
	got := program("image", "build", "--dataset", dataset, "--image-dir", store, "--json")
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != exitErrors {
		t.Fatalf("exit code %d, want %d: %v\n%s\n%s", got.code, exitErrors, err, got.out, got.errOut)
	}
	if report.Built != 1 || report.Failed != 1 || report.Reasons["command"] != 1 || !strings.Contains(got.errOut, "Dockerfile:3: RUN") || !strings.Contains(got.errOut, "these words") {
		t.Errorf("the report is %s\n%s", got.out, got.errOut)
	}
	got = program("image", "build", filepath.Join(works, "Dockerfile"), "-t", "mine", "--image-dir", store)
	if want := "built:mine\t3 layers, 0 made\t" + works + "\n"; got.code != 0 || got.out != want {
		t.Errorf("build again: exit code %d, %q, want %q\n%s", got.code, got.out, want, got.errOut)
	}
	out := filepath.Join(t.TempDir(), "run")
	got = program("run", "--dataset", dataset, "--policy", "oracle", "--image-dir", store, "--out", out, "--samples", "2", "--toolsets", "none", "--quiet")
	if got.code != exitErrors {
		t.Errorf("run: exit code %d, want %d\n%s", got.code, exitErrors, got.errOut)
	}
	for _, ep := range episodes(t, out) {
		if ep.Key.Task != "b" {
			if ep.Outcome != episode.Success || ep.Task.Build.Dir != "" {
				t.Errorf("%s: %s, %+v", ep.Key.Task, ep.Outcome, ep.Fault)
			}
			continue
		}
		if ep.Outcome != episode.SandboxError || ep.Fault == nil || ep.Fault.Class != "build" || !strings.Contains(ep.Fault.Message, "these words") || ep.Attempt != 1 {
			t.Errorf("%s: %s, attempt %d, %+v; want a fault that lasts", ep.Key.Task, ep.Outcome, ep.Attempt, ep.Fault)
		}
	}
	if got := program("image", "build", "--image-dir", store); got.code != exitUsage {
		t.Errorf("build of nothing: exit code %d, want %d", got.code, exitUsage)
	}
}
