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
	"trajgen/pipeline/run"
)

// TestReadme runs every command of the README and every run file, in order and in one folder, as a user would who has built
// the program. `make run` and `make test` are what calls this test, or stands beside it in CI.
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
	server, here := readmeEndpoint(t, "my-model", "secret")
	_, spare := readmeEndpoint(t, "other-model", "other-secret")
	local := strings.NewReplacer("http://localhost:8000/v1", here, "http://localhost:8001/v1", spare)
	files := regexp.MustCompile("(?ms)^```(?:yaml|json|text|sh) ([^\\s`]+)\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file[1]), []byte(local.Replace(file[2])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 || len(files) < 2 {
		t.Fatalf("%d blocks of commands and %d files in the README", len(blocks), len(files))
	}
	learn(t, server, "bundled")
	learn(t, server, filepath.Join(dir, "tasks.jsonl"))
	bash := func(script string) result {
		t.Helper()
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "MY_KEY=secret", "OTHER_KEY=other-secret")
		got := finish(t, cmd)
		if got.code != 0 {
			t.Errorf("exit code %d of\n%s\n%s%s", got.code, script, got.errOut, got.out)
		}
		return got
	}
	for _, block := range blocks {
		script := local.Replace(block[1])
		script = regexp.MustCompile(`(?m)^make .*$`).ReplaceAllString(script, "true")
		if got := bash(script); strings.Contains(script, " compress ") && !regexp.MustCompile(`(?m)^[1-9]\d* compressed`).MatchString(got.errOut) {
			t.Errorf("nothing is compressed by\n%s\n%s", script, got.errOut)
		}
	}
	for _, file := range files {
		if filepath.Ext(file[1]) != ".yaml" {
			continue
		}
		var settings run.File
		if run.Decode(filepath.Join(dir, file[1]), "a run file", &settings) != nil {
			if used := regexp.MustCompile(`[ :]` + regexp.QuoteMeta(file[1]) + `\b`); !used.MatchString(string(text)) {
				t.Errorf("%s is no run file, and nothing in the README uses it", file[1])
			}
			continue
		}
		script := "bin/trajgen run -f " + file[1] + " --quiet --max-tasks 1 --out runs/of-" + file[1]
		if len(settings.Dataset.Path) == 0 {
			script += " --dataset tasks.jsonl"
		}
		if settings.Model.Name == "" {
			script += " --model my-model --base-url " + here + " --api-key-env MY_KEY"
		}
		bash(script)
	}
}

// readmeEndpoint is the user's own server, with a key.
func readmeEndpoint(t *testing.T, model, key string) (*scripted.Server, string) {
	t.Helper()
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: model, APIKey: key})
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
