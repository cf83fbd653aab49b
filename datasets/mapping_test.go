package datasets_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

var all = flag.Bool("all", false, "run every verifier instead of a sample")

func TestMappings(t *testing.T) {
	if diff := cmp.Diff([]string{"gsm8k", "humaneval"}, datasets.Mappings()); diff != "" {
		t.Errorf("Mappings (-want +got):\n%s", diff)
	}
	for _, name := range datasets.Mappings() {
		if m := mapping(t, name); m.Name != name || m.Description == "" || !strings.HasPrefix(m.Digest(), "sha256:") {
			t.Errorf("LoadMapping(%q) = %q, %q, %q", name, m.Name, m.Description, m.Digest())
		}
	}
	_, err := datasets.LoadMapping("mbpp")
	wantError(t, err, `unknown mapping "mbpp" (have gsm8k, humaneval, or the path`)
	if _, err := datasets.LoadMapping("mbpp.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LoadMapping(mbpp.yaml) = %v, want %v", err, fs.ErrNotExist)
	}
}

// TestMappingAnchors holds that what is written once can be used again.
func TestMappingAnchors(t *testing.T) {
	const text = `
fields:
  prompt: &ask "{{.q}}?"
  system: *ask
  limits: &few {turns: 3}
  resources: {<<: [{cpus: 1}, {cpus: 2, disk: 1G}], memory: 2G}
metadata: {<<: *few, turns: "{{.q}}", other: *few}
`
	m, err := datasets.ParseMapping("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, write(t, "a.jsonl", `{"q": "Why"}`), datasets.Options{Map: m})[0]
	if got.Prompt[0].Content != "Why?" || got.System != "Why?" || got.Limits.Turns != 3 || got.Resources.CPUs != 1 || got.Resources.Memory != 2<<30 || got.Resources.Disk != 1<<30 {
		t.Errorf("task %+v", got)
	}
	if want := `{"other":{"turns":3},"turns":"Why"}`; string(got.Metadata) != want {
		t.Errorf("metadata %s, want %s", got.Metadata, want)
	}
	// Small files that would be large ones.
	laughs := "fields:\n  prompt: x\n  files:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("    a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	_, err = datasets.ParseMapping("m.yaml", []byte(laughs))
	wantError(t, err, "excessive aliasing")
}

// TestMappingForms holds what templates, tags and keep do.
func TestMappingForms(t *testing.T) {
	const text = `
fields:
  id: "{{.nr}}"
  prompt: "{{.question | trim}} ({{int .points}} points)"
  system: '{{default "" (index . "hint")}}'
  files: {"{{.name}}.py": "def f():\n{{.body | indent 4}}\n", "fixed.txt": "no template"}
  verify: [{number: '{{.answer | regexFind "= *(-?[0-9]+)"}}', weight: 2}, {exact: "{{.choices | last}}"}]
  gold:
    - tool_calls: [{name: terminal, arguments: {timeout: !json "{{.points}}", command: "cat {{.name}}.py"}}]
    - content: '{{.choices | join ", " | upper}} {{range .steps}}{{.kind}};{{end}}'
  env: !json '{{json .env}}'
  limits: !json "{{if eq (int .points) 3}}{\"turns\": 3}{{end}}"
metadata: {origin: "{{.source}}", level: 2}
`
	const rows = `{"nr": 7, "question": " Why? ", "points": "3", "name": "a", "body": "x = 1\nreturn x", "answer": "x = 12", "choices": ["no", "yes"], "steps": [{"kind": "s"}], "env": {"A": "b"}, "source": "quiz", "kind": "kept", "files": "kept too", "nothing": null}`
	m, err := datasets.ParseMapping("quiz.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, write(t, "a.jsonl", rows), datasets.Options{Map: m})[0]
	number, yes := 12.0, "yes"
	want := &episode.Task{
		ID: "7", Prompt: []episode.Message{{Role: "user", Content: "Why? (3 points)"}},
		Files:  episode.Files{"a.py": episode.File("def f():\n    x = 1\n    return x\n"), "fixed.txt": episode.File("no template")},
		Env:    map[string]string{"A": "b"},
		Verify: []episode.Check{{Number: &number, Weight: 2}, {Exact: episode.Texts{yes}}},
		Gold: []episode.Step{
			{Calls: []episode.GoldCall{{Name: "terminal", Arguments: []byte(`{"timeout":3,"command":"cat a.py"}`)}}},
			{Content: "NO, YES s;"},
		},
		Limits:   episode.Limits{Turns: 3},
		Metadata: []byte(`{"files":"kept too","kind":"kept","level":2,"origin":"quiz"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for keep, want := range map[string]string{"[]": "", "[question, absent]": `{"question":"q"}`} {
		m, err := datasets.ParseMapping("m", []byte("keep: "+keep+"\nfields: {prompt: '{{.question}}'}"))
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, write(t, "a.jsonl", `{"question": "q", "x": 1}`), datasets.Options{Map: m})[0]
		if string(got.Metadata) != want {
			t.Errorf("keep: %s leaves metadata %s, want %s", keep, got.Metadata, want)
		}
	}
}

func TestMappingRefuses(t *testing.T) {
	tests := []struct {
		name, give string
		want       []string
	}{
		{"empty", "", []string{"want a YAML mapping with fields"}},
		{"no fields", "keep: [a]", []string{"it has no fields"}},
		{"everything at once", "field: {}\nkeep: 1\nfields:\n  promt: x\n  id: '{{.a'\n  setup: '{{frob .a}}'\n  prompt: {a: 1, a: 2}\n",
			[]string{`line 1: unknown key "field" (have description, fields, keep, metadata)`, "line 2: ", `line 4: unknown field "promt" (have allow, build, channels, cwd, difficulty`,
				"line 5: id: text:1: unclosed action", `line 6: setup: text:1: function "frob" not defined`, `prompt: line 7: the key "a" is there twice`}},
		{"YAML", "fields: {prompt: {{.a}}}", []string{"mapping m.yaml"}},
		{"an anchor within itself", "fields: {prompt: x, files: &a {b: *a}}", []string{"anchor 'a' value contains itself"}},
		{"ambiguous number", "fields: {id: 007, prompt: x}", []string{"the number 007 has more than one reading"}},
		{"tag", "fields: {prompt: !include x}", []string{"unknown tag !include"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := datasets.ParseMapping("m.yaml", []byte(tt.give))
			wantError(t, err, tt.want...)
		})
	}
}

func TestMappingRowErrors(t *testing.T) {
	tests := []struct{ name, template, row, want string }{
		{"missing field", "{{.question}}", `{"quest": "x"}`, `a.jsonl:1: mapping m: prompt: line 1: map has no entry for key "question"`},
		{"null field", "{{.question}}", `{"question": null}`, `no entry for key "question"`},
		{"missing inner field", "{{.a.b}}", `{"a": {"b": null}}`, `no entry for key "b"`},
		{"nothing printed", `{{index . "a"}}`, `{"b": 1}`, `printed "<no value>"`},
		{"empty list", "{{last .a}}", `{"a": []}`, "the list is empty"},
		{"not a list", "{{first .a}}", `{"a": 1}`, "want a list"},
		{"not a number", "{{int .a}}", `{"a": "x"}`, `"x" is not a whole number`},
		{"expression", `{{regexFind .a "x"}}`, `{"a": "("}`, "error parsing regexp"},
		{"not JSON", `!json {{.a}}`, `{"a": "{"}`, `"{" is not JSON`},
		{"the row's own errors", "{{.a}}", `{"a": " "}`, "prompt: it is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tag := ""
			if rest, ok := strings.CutPrefix(tt.template, "!json "); ok {
				tag, tt.template = "!json ", rest
			}
			m, err := datasets.ParseMapping("m", []byte("fields: {prompt: "+tag+"'"+tt.template+"'}"))
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range open(t, write(t, "a.jsonl", tt.row), datasets.Options{Map: m}).Tasks(t.Context()) {
				wantError(t, err, tt.want)
			}
		})
	}
	// The text may well be in the data.
	m, err := datasets.ParseMapping("m", []byte("fields: {prompt: '{{.a}}'}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, write(t, "a.jsonl", `{"a": "<no value>"}`), datasets.Options{Map: m}); got[0].Prompt[0].Content != "<no value>" {
		t.Errorf("prompt = %q, want the row's own <no value>", got[0].Prompt[0].Content)
	}
}

func TestGSM8K(t *testing.T) {
	for _, task := range mapped(t, "gsm8k", "gsm8k-test.jsonl", 1319) {
		lines := strings.Split(task.Gold[0].Content, "\n")
		if len(task.Gold) != 1 || strings.Contains(task.Gold[0].Content, "<<") || task.Verify[0].Number == nil ||
			len(lines) < 2 || strings.ContainsAny(lines[len(lines)-1], ", #") {
			t.Errorf("row %d: gold %q, checks %+v", task.Row, task.Gold[0].Content, task.Verify)
		}
	}
}

// TestHumanEval runs the verifier of rows on their gold: of each with -all, else of every eighth, as each is a process.
func TestHumanEval(t *testing.T) {
	tasks := mapped(t, "humaneval", "HumanEval.jsonl.gz", 164)
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, task := range tasks {
		if i > 1 && i%8 > 0 && !*all {
			continue
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if output, err := verify(t, task, goldSolution(t, task)); err != nil {
				t.Errorf("%s: the gold scores nothing: %v\n%s", task.ID, err, output)
			}
		})
	}
	wait.Wait()
}

// TestHumanEvalIsNotFooled runs the verifier on what an agent might try.
func TestHumanEvalIsNotFooled(t *testing.T) {
	tasks := read(t, "testdata/humaneval.jsonl", datasets.Options{Map: mapping(t, "humaneval")})
	span, decode := tasks[0], tasks[1]
	tests := []struct {
		name     string
		task     *episode.Task
		solution string
		passes   bool
	}{
		{"right", span, "def span(n): return max(n) - min(n) if n else 0", true},
		{"right, noisy", span, "print('ok' * 100000)\ndef span(n):\n  print(1)\n  return max(n) - min(n) if n else 0", true},
		{"right, with a dataclass", span, "from dataclasses import dataclass\n@dataclass\nclass P:\n  a: int\ndef span(n): return max(n) - min(n) if n else 0", true},
		{"right, without the helper", decode, "def decode(t): return ''.join(t[i:i+2][::-1] for i in range(0, len(t), 2))", true},
		{"wrong", span, "def span(n): return 6", false},
		{"no file", span, "", false},
		{"empty", span, "\n", false},
		{"syntax", span, "def span(", false},
		{"exit at import", span, "import sys\nsys.exit(0)", false},
		{"hard exit at import", span, "import os\nos._exit(0)", false},
		{"exit when called", span, "def span(n): raise SystemExit(0)", false},
		{"hard exit when called", span, "import os\ndef span(n): os._exit(0)", false},
		{"prints ok into every file", span, "import os\nfor f in range(20):\n  try: os.write(f, b'ok' * 9)\n  except OSError: pass\nos._exit(0)", false},
		{"equal to everything", span, "class A(int):\n  __eq__ = lambda a, b: True\ndef span(n): return A()", false},
		{"writes what a frame or the main module holds", span, "import __main__, os\nos.write(__main__.write, __main__.want)\nos._exit(0)", false},
		{"walks the frames", span, `
import os, sys
frame = sys._getframe()
while frame:
    for scope in (frame.f_globals, frame.f_locals):
        for value in list(scope.values()):
            if isinstance(value, bytes):
                for f in range(20):
                    try: os.write(f, value)
                    except OSError: pass
    frame = frame.f_back
os._exit(0)`, false},
		{"kills the verifier", span, "import os\nos.kill(os.getppid(), 9)", false},
		{"finds the test", span, `
import os, re
def span(n):
    for name in re.findall(r"/[^\0]*check.py", open(f"/proc/{os.getppid()}/cmdline").read()):
        if "-2, 5" in open(name).read(): return max(n) - min(n) if n else 0`, false},
		{"reads the verifier's memory", span, `
import os
open(f"/proc/{os.getppid()}/mem", "rb").close()
def span(n): return max(n) - min(n) if n else 0`, false},
		{"writes to the verifier's memory", span, `
import os
open(f"/proc/{os.getppid()}/mem", "r+b").close()
def span(n): return max(n) - min(n) if n else 0`, false},
		{"floods every descriptor", span, "import os\nwhile True:\n  for f in range(20):\n    try: os.write(f, b'0' * 65536)\n    except OSError: pass", false},
		{"answers in advance with what is no value", span, "import os\nfor f in range(20):\n  try: os.write(f, b'[\"ok\", [\"object\", []]]\\n' * 9)\n  except OSError: pass", false},
		{"nests answers deeply", span, "import os\nfor f in range(20):\n  try: os.write(f, b'[' * 100000 + b'\\n')\n  except OSError: pass", false},
		{"raises an exit by name", span, "class SystemExit(BaseException): pass\ndef span(n): raise SystemExit(0)", false},
		{"changes how values are written", span, "import __main__\n__main__.pack = lambda value: True\ndef span(n): return 0", false},
		{"closes everything", span, "import os\nos.closerange(0, 100)\ndef span(n): return 0", false},
		{"helper and function agree on nothing", decode, "def encode(t): return t\ndef decode(t): return t", false},
	}
	users, _ := os.ReadFile("/proc/self/uid_map")
	apart := os.Geteuid() == 0 && strings.Contains(string(users), "4294967295")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			output, err := verify(t, tt.task, tt.solution)
			if (err == nil) != tt.passes {
				t.Errorf("the verifier says %v, want passes = %v\n%s", err, tt.passes, output)
			}
			// Any other end is one of a verifier that is broken. Without a second user the solution can kill it.
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() != 1 && (tt.name != "kills the verifier" || apart) {
				t.Errorf("the verifier ends with %v, want status 1\n%s", err, output)
			}
		})
	}
}

// mapped reads the project's own rows and, where the real dataset is beside the repository, all of that.
func mapped(t *testing.T, name, file string, rows int) []*episode.Task {
	t.Helper()
	tasks := read(t, filepath.Join("testdata", name+".jsonl"), datasets.Options{Map: mapping(t, name)})
	real := filepath.Join("..", "..", "shared", "datasets", file)
	if _, err := os.Stat(real); errors.Is(err, fs.ErrNotExist) {
		t.Logf("%s is not there; only the %d rows of testdata are read", real, len(tasks))
		return tasks
	}
	all := read(t, real, datasets.Options{Map: mapping(t, name)})
	if len(all) != rows {
		t.Errorf("%s gives %d tasks, want %d", real, len(all), rows)
	}
	return append(tasks, all...)
}

func mapping(t *testing.T, name string) *datasets.Mapping {
	t.Helper()
	m, err := datasets.LoadMapping(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func goldSolution(t *testing.T, task *episode.Task) string {
	t.Helper()
	var arguments struct{ Path, Content string }
	decodeJSON(t, task.Gold[0].Calls[0].Arguments, &arguments)
	if task.Gold[0].Calls[0].Name != "write_file" || arguments.Path != "solution.py" {
		t.Errorf("%s: the gold calls %s on %q, want write_file on solution.py", task.ID, task.Gold[0].Calls[0].Name, arguments.Path)
	}
	return arguments.Content
}

// verify does what a sandbox does with a check of tests and command: private files apart, command in the working
// directory.
func verify(t *testing.T, task *episode.Task, solution string) ([]byte, error) {
	t.Helper()
	work, private := t.TempDir(), t.TempDir()
	if solution != "" {
		put(t, work, "solution.py", solution)
		put(t, work, "random.py", "randint = choice = None") // what lies beside the solution must not matter
	}
	for name, content := range task.Verify[0].Tests {
		put(t, private, strings.TrimPrefix(name, "/tests/"), string(content))
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", task.Verify[0].Command)
	command.Dir = work
	command.Env = append(os.Environ(), "TESTS="+private, "PATH=/usr/local/bin:/usr/bin:/bin")
	return command.CombinedOutput()
}

func put(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Error(err)
	}
}
