package datasets_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/datasets"
)

// TestBundled holds what the bundled tasks promise as a set; that each gold scores is checked where sandboxes are.
func TestBundled(t *testing.T) {
	tasks := read(t, datasets.Bundled, datasets.Options{})
	if len(tasks) < 60 {
		t.Errorf("%d bundled tasks, want at least 60", len(tasks))
	}
	golds, long, ids := map[string]int{}, 0, map[string]bool{}
	for _, task := range tasks {
		if ids[task.ID] {
			t.Errorf("%s: the id is there twice", task.ID)
		}
		ids[task.ID] = true
		switch {
		case len(task.ID) < 5 || task.ID[:4] == "sha-":
			t.Errorf("row %d (%q) has no id of its own", task.Row, task.ID)
		case len(task.Gold) < 2 || len(task.Verify) == 0 || len(task.Tags) == 0:
			t.Errorf("%s: %d gold steps, %d checks, %d tags", task.ID, len(task.Gold), len(task.Verify), len(task.Tags))
		case task.Difficulty != "easy" && task.Difficulty != "medium" && task.Difficulty != "hard":
			t.Errorf("%s: difficulty %q, want easy, medium or hard", task.ID, task.Difficulty)
		}
		if task.Metadata != nil {
			t.Errorf("%s: unknown keys: %s", task.ID, task.Metadata)
		}
		if len(task.Gold) > 6 {
			long++
		}
		used := map[string]bool{}
		for _, step := range task.Gold {
			for _, call := range step.Calls {
				used[call.Name] = true
				if strings.Contains(string(call.Arguments), "/tmp/") { // which is the whole machine's with some backends; ~ is not
					t.Errorf("%s: the gold uses /tmp: %s", task.ID, call.Arguments)
				}
			}
		}
		for tool := range used {
			golds[tool]++
		}
	}
	if long < 5 {
		t.Errorf("%d golds have more than six turns, want several", long)
	}
	for _, tool := range []string{"terminal", "process", "read_file", "write_file", "patch", "search_files", "execute_code", "todo"} {
		if golds[tool] < 3 {
			t.Errorf("%d golds use %s, want at least three", golds[tool], tool)
		}
	}
}

// TestBundledApart holds that the bundled datasets are apart: none has rows of another, nor its digest.
func TestBundledApart(t *testing.T) {
	digests := map[string]string{}
	for path, tag := range map[string]string{datasets.Bundled: "", datasets.BundledResearch: "research", datasets.BundledBrowser: "browser", datasets.BundledSkills: "skills", datasets.BundledHome: "home"} {
		digest, err := open(t, path, datasets.Options{}).Digest(t.Context())
		if err != nil || digests[digest] != "" {
			t.Errorf("the digest of %s is %s, like that of %q, and %v", path, digest, digests[digest], err)
		}
		digests[digest] = path
		for _, task := range read(t, path, datasets.Options{}) {
			for _, of := range []string{"research", "browser", "skills", "home"} {
				if slices.Contains(task.Tags, of) != (of == tag) {
					t.Errorf("%s has %s, with the tags %v", path, task.ID, task.Tags)
				}
			}
		}
	}
}

// TestBundledGuard holds that what the agent writes cannot decide about itself: its modules run apart from the check.
func TestBundledGuard(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	var tests map[string]string
	for _, task := range read(t, datasets.Bundled, datasets.Options{}) {
		if task.ID == "pyfix-duration-parse" {
			tests = map[string]string{}
			for name, data := range task.Verify[0].Tests {
				tests[filepath.Base(name)] = string(data)
			}
		}
	}
	if tests["guard.py"] == "" || tests["check.py"] == "" {
		t.Fatalf("the check has %d files, want check.py and guard.py among them", len(tests))
	}
	const flood = `
import gc, os, sys
def spill(value):
    if isinstance(value, (bytes, bytearray)):
        for fd in range(3, 64):
            try: os.write(fd, value)
            except OSError: pass
`
	const wrong = "def parse_duration(text): return 0\n"
	for _, tt := range []struct {
		name, module string
		passes       bool
	}{
		{"solution", `
import re
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
def parse_duration(text):
    print("noise")
    text = text.strip().lower()
    if text.isdigit(): return int(text)
    if not re.fullmatch(r"(?:\d+[smhd])+", text): raise ValueError(text)
    return sum(int(n) * UNITS[u] for n, u in re.findall(r"(\d+)([smhd])", text))
`, true},
		{"wrong", wrong, false},
		{"frames", flood + `
frame = sys._getframe()
while frame:
    for value in [*frame.f_globals.values(), *frame.f_locals.values()]: spill(value)
    frame = frame.f_back
` + wrong, false},
		{"main", flood + `
import __main__
for value in list(vars(__main__).values()): spill(value)
` + wrong, false},
		{"collector", flood + `
for value in gc.get_objects():
    if isinstance(value, dict): [spill(v) for v in list(value.values())]
spill(b'{}\n'), spill(b'["value", 45]\n' * 100)
` + wrong, false},
		{"all is equal", `
class Any(int):
    __eq__ = __lt__ = __bool__ = lambda *_: True
    __hash__ = int.__hash__
def parse_duration(text):
    if text.strip()[:1] in "" or not text[-1:].isalpha(): raise ValueError
    return Any()
`, false},
		{"exit at import", "import os; os._exit(0)", false},
		{"exit in a call", "def parse_duration(text): raise SystemExit(0)", false},
		{"garbage", `
import os
for fd in range(3, 64):
    try: os.write(fd, b'["error", ["SystemExit"], "0", 0]\n["remote", [[' + b"[" * 100000 + b"\n")
    except OSError: pass
`, false},
		{"reads the check", `
import os
path = [p for p in open(f"/proc/{os.getppid()}/cmdline").read().split("\0") if p.endswith("check.py")][0]
text = open(path).read()
open("leak.txt", "w").write(text)
` + wrong, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			work, private := t.TempDir(), t.TempDir()
			put := func(name, text string) {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range tests {
				put(filepath.Join(private, name), text)
			}
			put(filepath.Join(work, "durations.py"), tt.module)
			command := exec.CommandContext(t.Context(), "python3", filepath.Join(private, "check.py"))
			command.Dir, command.Env = work, append(os.Environ(), "TESTS="+private)
			output, err := command.CombinedOutput()
			if (err == nil) != tt.passes {
				t.Errorf("check ended with %v, want success %t: %s", err, tt.passes, output)
			}
			if leak, err := os.ReadFile(filepath.Join(work, "leak.txt")); err == nil {
				t.Errorf("the module could read the check: %.100s", leak)
			}
		})
	}
}

func decodeJSON(t *testing.T, data []byte, target any) {
	t.Helper()
	if err := json.Unmarshal(data, target); err != nil {
		t.Error(err)
	}
}
