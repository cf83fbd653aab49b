package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/model/scripted"
)

// TestReadme runs every command of the README, in order and in one folder, as a user would who has built the program.
// `make run` and `make test` are what calls this test, or stands beside it in CI.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"bin/trajgen": build(t), "examples": filepath.Join(root, "examples"), "datasets": filepath.Join(root, "datasets")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	server, here := readmeEndpoint(t)
	files := regexp.MustCompile("(?ms)^```(?:yaml|json) ([^\\s`]+)\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file[1]), []byte(strings.ReplaceAll(file[2], "http://localhost:8000/v1", here)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 || len(files) < 2 {
		t.Fatalf("%d blocks of commands and %d files in the README", len(blocks), len(files))
	}
	learn(t, server, "bundled")
	learn(t, server, filepath.Join(dir, "tasks.jsonl"))
	for _, block := range blocks {
		script := strings.ReplaceAll(block[1], "http://localhost:8000/v1", here)
		script = regexp.MustCompile(`(?m)^make .*$`).ReplaceAllString(script, "true")
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "MY_KEY=secret")
		if got := finish(t, cmd); got.code != 0 {
			t.Errorf("exit code %d of\n%s\n%s%s", got.code, script, got.errOut, got.out)
		}
	}
}

// readmeEndpoint is the user's own server: the README's model, with the README's key.
func readmeEndpoint(t *testing.T) (*scripted.Server, string) {
	t.Helper()
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: "my-model", APIKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server, url
}

func learn(t *testing.T, server *scripted.Server, dataset string) {
	t.Helper()
	source, err := datasets.Open(dataset, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for task, err := range source.Tasks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		server.Learn(task)
	}
}
