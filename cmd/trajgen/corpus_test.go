package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pagesFolder is a folder with two documents and a picture.
func pagesFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"marrow.md": "# Marrow\n\nIts lighthouse burned.", "oru.txt": "No harbour.", "map.png": "\x89PNG"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCorpus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.corpus")
	built := succeed(t, "corpus", "build", pagesFolder(t), "--analyser", "english", "--out", file)
	if !strings.Contains(built.out, "x.corpus: 2 documents, 7 words") || !strings.Contains(built.errOut, "left out 1 that are not documents, such as ") {
		t.Errorf("build: %+v", built)
	}
	var info struct {
		Documents        int
		Analyser, Digest string
	}
	if err := json.Unmarshal([]byte(succeed(t, "corpus", "info", file, "--json").out), &info); err != nil || info.Documents != 2 || info.Analyser != "english" || !strings.Contains(built.out, info.Digest) {
		t.Errorf("info: %+v, %v", info, err)
	}
	var hits []foundDocument
	if err := json.Unmarshal([]byte(succeed(t, "corpus", "search", file, "lighthouses", "--json").out), &hits); err != nil || len(hits) != 1 || hits[0].ID != "marrow.md" || hits[0].Score <= 0 {
		t.Errorf("search: %+v, %v", hits, err)
	}
	if got := succeed(t, "corpus", "search", file, "lighthouse"); !strings.HasPrefix(got.out, "1. Marrow\n   marrow.md\n   ") {
		t.Errorf("search: %+v", got)
	}
	if got := succeed(t, "corpus", "search", file, "unheard"); got.out != "" || got.errOut == "" {
		t.Errorf("search without a hit: %+v", got)
	}
	if got := succeed(t, "corpus", "show", file, "oru.txt"); got.out != "id: oru.txt\ntitle: oru\nurl: \n\nNo harbour.\n" {
		t.Errorf("show: %+v", got)
	}
	if got := succeed(t, "corpus", "show", file, "oru.txt", "--json"); !json.Valid([]byte(got.out)) || !strings.Contains(got.out, `"text": "No harbour."`) {
		t.Errorf("show: %+v", got)
	}
	if got := succeed(t, "corpus", "info", file); !strings.Contains(got.out, "documents: 2\n") {
		t.Errorf("info: %+v", got)
	}
}

func TestCorpusMistakes(t *testing.T) {
	dir := pagesFolder(t)
	file := filepath.Join(t.TempDir(), "x.corpus")
	succeed(t, "corpus", "build", dir, "--out", file)
	rows := write(t, "rows.jsonl", "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\": \"a\", \"text\": \"y\"}\n")
	bad := write(t, "bad.jsonl", "{\"id\": \"a\", \"text\": \"x\"}\n{\n")
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"build " + dir, exitUsage, "needs --out FILE"},
		{"build --out " + file, exitUsage, "arg(s)"},
		{"build " + dir + " --out x --analyser french --map body=text", exitUsage, `no field "body"`},
		{"build " + dir + "/none --out " + file, exitUsage, "no such file"},
		{"build " + dir + "/map.png --out " + file, exitUsage, "format"},
		{"build " + rows + " --out " + file, exitUsage, rows + `:2: the id "a" is that of the document at ` + rows + ":1, too"},
		{"build " + bad + " --out " + file, exitUsage, bad + ":2: invalid JSON"},
		{"build " + dir + " --out " + dir, exitFailed, "directory"},
		{"build " + dir + " --out /nowhere/x.corpus", exitFailed, "/nowhere"},
		{"search " + dir + "/oru.txt x", exitUsage, "not an index"},
		{"search " + file + " x --limit 0", exitUsage, "want from 1 to 1000"},
		{"search " + file, exitUsage, "arg(s)"},
		{"show " + file + " none", exitFailed, "has no document \"none\""},
		{"info " + dir + "/none", exitUsage, "no such file"},
		{"serve " + file + " --addr nowhere:x", exitUsage, "listen"},
		{"bulid", exitUsage, "has no command"},
	} {
		got := trajgen(t, append([]string{"corpus"}, strings.Fields(tt.line)...)...)
		if got.code != tt.code || !strings.Contains(got.errOut, tt.want) {
			t.Errorf("corpus %s: exit code %d, %s, want %d, %q", tt.line, got.code, got.errOut, tt.code, tt.want)
		}
	}
	if got := succeed(t, "corpus", "info", file); !strings.Contains(got.out, "documents: 2\n") {
		t.Errorf("builds that failed changed the index: %+v", got)
	}
	left := succeed(t, "corpus", "build", bad, "--skip-bad", "--json", "--out", file)
	if !strings.Contains(left.errOut, "left out: "+bad+":2: ") || !strings.Contains(left.errOut, "left out 1 documents") || !strings.Contains(left.out, `"documents": 1`) {
		t.Errorf("--skip-bad: %+v", left)
	}
}

func TestCorpusServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.corpus")
	succeed(t, "corpus", "build", pagesFolder(t), "--out", file)
	cmd := exec.Command(build(t), "corpus", "serve", file, "--addr", "127.0.0.1:0")
	cmd.Stderr = t.Output()
	url := serving(t, cmd)
	response, err := http.Post(url+"/retrieve", "application/json", strings.NewReader(`{"queries": ["lighthouse"]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct{ Result [][]struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || len(got.Result) != 1 || got.Result[0][0].ID != "marrow.md" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after a signal: %v", err)
	}
}
