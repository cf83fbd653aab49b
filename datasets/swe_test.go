package datasets_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// repository is what an image would have: a commit to work from, and what must not be found, the commit that solves it.
const repository = `set -e
git init -q -b main
git config user.name a
git config user.email a@localhost
mkdir tests
cat > tests/runtests.py <<'END'
#!/usr/bin/env python3
import importlib, sys, unittest
sys.path[:0] = [".", "tests"]
names = [a for a in sys.argv[1:] if not a.startswith("-")][1:]
unittest.main(None, argv=["x", "-v"] + names)
END
chmod +x tests/runtests.py
echo 'SIZE = 1' > hat.py
cat > tests/size.py <<'END'
import unittest, hat
class T(unittest.TestCase):
    def test_kind(self): self.assertEqual(type(hat.SIZE), int)
END
git add -A && git commit -qm base && git rev-parse HEAD
echo 'SIZE = 2' > hat.py
git commit -qam solved && git rev-parse HEAD
git tag later && git checkout -qb other && git checkout -q main && git reset -q --hard HEAD~1
git remote add origin /nowhere && git update-ref refs/remotes/origin/main later
`

// TestSWE plays an issue of a small repository in every way that was thought of.
func TestSWE(t *testing.T) {
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	const testPatch = `diff --git a/tests/size.py b/tests/size.py
--- a/tests/size.py
+++ b/tests/size.py
@@ -1,3 +1,4 @@
 import unittest, hat
 class T(unittest.TestCase):
     def test_kind(self): self.assertEqual(type(hat.SIZE), int)
+    def test_size(self): self.assertEqual(hat.SIZE, 2)
`
	whole, err := backend.Open(t.Context(), sandbox.Spec{ID: "whole", Workdir: "/testbed"})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	run := func(t *testing.T, sb sandbox.Sandbox, command string) string {
		t.Helper()
		result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", command}}, sandbox.RunOptions{Merge: true})
		if err != nil || result.Exit.Code != 0 {
			t.Fatalf("%s: %+v, %v: %s", command, result.Exit, err, result.Stdout.Bytes())
		}
		return string(result.Stdout.Bytes())
	}
	commits := strings.Fields(run(t, whole, repository))
	row, err := json.Marshal(map[string]any{
		"instance_id": "django__django-1", "repo": "django/django", "base_commit": commits[0], "problem_statement": "Too small.",
		"patch": "--- a/hat.py\n+++ b/hat.py\n@@ -1 +1 @@\n-SIZE = 1\n+SIZE = 2\n", "test_patch": testPatch,
		"FAIL_TO_PASS": `["test_size (size.T.test_size)"]`, "PASS_TO_PASS": []string{"test_kind (size.T.test_kind)"},
	})
	if err != nil {
		t.Fatal(err)
	}
	task := taskOf(t, string(row))
	run(t, whole, task.Setup)
	run(t, whole, "! git cat-file -e "+commits[1]+" && [ -z \"$(git remote)$(git tag)$(git reflog)\" ] && [ \"$(git rev-parse HEAD)\" = "+commits[0]+" ]")
	var solution struct{ Command string }
	if err := json.Unmarshal(task.Gold[0].Calls[0].Arguments, &solution); err != nil {
		t.Fatal(err)
	}
	sealed, err := whole.(sandbox.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()

	tests := []struct {
		name, agent string
		want        float64
	}{
		{"nothing", "true", 0},
		{"the solution", solution.Command, 1},
		{"a solution that breaks something", "echo 'SIZE = 2.0' > hat.py", 0},
		{"edited tests", "printf 'import unittest\\nclass T(unittest.TestCase):\\n def test_kind(self): pass\\n def test_size(self): pass\\n' > tests/size.py; git commit -qam x", 0},
		{"a directory in place of the tests", "rm tests/size.py; mkdir -p tests/size.py/x", 0},
		{"a link in place of the tests' directory", "mv tests /tmp/tests && ln -s /tmp/tests tests", 0},
		{"a broken index", solution.Command + "\necho x > .git/index", 1},
		{"no repository", "rm -rf .git", 0},
		{"a solution, committed", solution.Command + "\ngit commit -qam x", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb, err := backend.Open(t.Context(), sandbox.Spec{ID: "test", From: sealed})
			if err != nil {
				t.Fatal(err)
			}
			defer sb.Close()
			run(t, sb, tt.agent)
			subject := reward.Subject{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return sb, nil }}
			rewards, got, err := reward.Verify(t.Context(), task.Verify, subject)
			if err != nil || got != tt.want {
				t.Errorf("reward %v, %v, want %v: %+v", got, err, tt.want, rewards)
			}
		})
	}
}

// taskOf reads a row.
func taskOf(t *testing.T, row string) *episode.Task {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(row+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return read(t, path, datasets.Options{})[0]
}

// TestSWEJudge reads what each runner prints.
func TestSWEJudge(t *testing.T) {
	row := func(repo string, names ...string) string {
		text, err := json.Marshal(map[string]any{
			"instance_id": "a__b-1", "repo": repo, "base_commit": "abcdef0", "problem_statement": "p", "patch": "",
			"test_patch": "+++ b/t.py\n", "FAIL_TO_PASS": names,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := []struct {
		name, repo, log string
		want            map[string]bool
	}{
		{"pytest", "octo/hat", "\x1b[32mPASSED\x1b[0m t.py::a\nPASSED t.py::b[x y]\nFAILED t.py::c - assert 1 == 2\nERROR t.py::d\nXFAIL t.py::e - why\nSKIPPED [1] t.py:3: no\nPASSED t.py::f[1 1]\nFAILED t.py::f[1 2] - x\n", map[string]bool{
			"t.py::a": true, "t.py::b[x y]": true, "t.py::b[x": true, "t.py::c": false, "t.py::d": false, "t.py::e": true, "t.py::g": false, "t.py::f[1": false, "t.py::f[1 1]": true,
		}},
		{"django", "django/django", "test_a (m.T) ... ok\ntest_b (m.T)\nWhat it does. ... ok\ntest_c (m.T) ... FAIL\ntest_d (m.T) ... skipped 'no'\ntest_e (m.T) ...\nprinted\nok\ntest_f (m.T) ... ok\nERROR: test_f (m.T)\n", map[string]bool{
			"test_a (m.T)": true, "What it does.": true, "test_c (m.T)": false, "test_d (m.T)": false, "test_e (m.T)": true, "test_f (m.T)": false,
		}},
		{"sympy", "sympy/sympy", "sympy/t.py[4]\ntest_a ok\ntest_b F\ntest_c E\ntest_d f\n____ sympy/t.py:test_b ____\ntest_e ok [OK]\n", map[string]bool{
			"test_a": true, "test_b": false, "test_c": false, "test_d": true, "test_e": true,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, names := t.TempDir(), slices.Sorted(maps.Keys(tt.want))
			for path, data := range taskOf(t, row(tt.repo, names...)).Verify[0].Tests {
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "log"), []byte(tt.log), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("python3", "-I", filepath.Join(dir, "judge.py"), dir).CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "\n0\n") {
				t.Fatalf("%v: %s", err, out)
			}
			for name, good := range tt.want {
				if bad := strings.Contains(string(out), "fail_to_pass "+name+": "); bad == good {
					t.Errorf("%q went well: %t, want %t: %s", name, !bad, good, out)
				}
			}
		})
	}
}
