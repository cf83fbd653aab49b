package datasets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/datasets"
)

// TestScorers has scorers beside the dataset and among the tests of a check.
func TestScorers(t *testing.T) {
	path := write(t, "tasks.jsonl", `{"prompt": "a", "verify": {"python": "scorers/s.py", "tests": {"/tests/data": "x"}, "timeout": 5}}
{"prompt": "b", "verify": {"python": "/tests/s.py", "tests": {"/tests/s.py": "own"}}}
{"prompt": "c", "verify": {"python": "../s.py"}}
{"prompt": "d", "verify": {"python": "link.py"}}
{"prompt": "e", "verify": {"python": "scorers"}}
{"prompt": "f", "verify": {"python": "none.py"}}
{"prompt": "g", "verify": {"python": "/tests/none.py"}}
{"prompt": "h", "verify": {"python": "scorers/s.py", "tests": {"/tests/s.py": "x"}}}
{"prompt": "i", "verify": {"python": "scorers/s.py", "reward": "stdout"}}
{"prompt": "j", "verify": {"python": "dir.py"}}
`)
	dir := filepath.Dir(path)
	outside := filepath.Join(t.TempDir(), "secret.py")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "scorers"), 0o700), os.Mkdir(filepath.Join(dir, "dir.py"), 0o700), os.WriteFile(filepath.Join(dir, "scorers", "s.py"), []byte("beside"), 0o600),
		os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(dir, "link.py")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var wrong []error
	tasks := read(t, path, datasets.Options{SkipBadRows: true, OnSkip: func(bad *datasets.RowError) { wrong = append(wrong, bad) }})
	for i, want := range []string{"beside", "own"} {
		check := tasks[i].Verify[0]
		if got := string(check.Tests[check.Python]); check.Python != "/tests/s.py" || got != want {
			t.Errorf("%d: %s is %q, want %q", i, check.Python, got, want)
		}
	}
	for i, want := range []string{`holds ".."`, "path escapes", "want a file of Python", "no such file", "is not among the check's tests", "is the place of the scorer", "reward only goes with command", "want a file of at most"} {
		wantError(t, wrong[i], "verify", want)
	}
}

// TestScorerIsReadOnce has many rows share what their scorer holds.
func TestScorerIsReadOnce(t *testing.T) {
	path := write(t, "tasks.jsonl", strings.Repeat(`{"prompt": "a", "verify": {"python": "s.py"}}`+"\n", 300))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "s.py"), []byte("beside"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := read(t, path, datasets.Options{})
	for i, task := range read {
		if first, own := read[0].Verify[0].Tests["/tests/s.py"], task.Verify[0].Tests["/tests/s.py"]; string(own) != "beside" || &own[0] != &first[0] {
			t.Fatalf("row %d has %q, want the first row's own", i, own)
		}
	}
}
