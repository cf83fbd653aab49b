package datasets_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"trajgen/datasets"
)

// TestShapes holds what each row of another tool becomes.
func TestShapes(t *testing.T) {
	var got bytes.Buffer
	for _, task := range read(t, "testdata/shapes.jsonl", datasets.Options{}) {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(task.Metadata, &whole); err != nil {
			t.Fatal(err)
		}
		task.Metadata = whole["shape"] // the rest is the row
		if whole["trajgen_shape"] != nil {
			task.Metadata = whole["trajgen_shape"]
		}
		for i := range task.Verify {
			// Long, and tried by TestSWE.
			for _, name := range []string{"/tests/test.sh", "/tests/judge.py"} {
				if len(task.Verify[i].Tests) > 0 {
					task.Verify[i].Tests[name] = []byte("…")
				}
			}
		}
		task.Setup, _, _ = strings.Cut(task.Setup, "# Nothing of what")
		encoder := json.NewEncoder(&got)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(task); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, got.Bytes())
}

// TestShapeKeepsRow holds that nothing of a row is lost.
func TestShapeKeepsRow(t *testing.T) {
	text, err := os.ReadFile("testdata/shapes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tasks := read(t, "testdata/shapes.jsonl", datasets.Options{})
	i := 0
	for line := range strings.Lines(string(text)) {
		var row, kept map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(tasks[i].Metadata, &kept); err != nil {
			t.Fatal(err)
		}
		for name, value := range row {
			want, _ := json.Marshal(value)
			if got, _ := json.Marshal(kept[name]); !bytes.Equal(got, want) {
				t.Errorf("row %d: %s is %s in the metadata, want %s", i, name, got, want)
			}
		}
		i++
	}
}

const chat = `{"id": "c", "messages": [{"role": "developer", "content": "S"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}, {"role": "tool", "tool_call_id": "1", "content": "y"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": [{"type": "text", "text": "c"}]}, {"role": "assistant", "content": "d"}]}`

// TestChat plays a whole conversation of OpenAI's form, which is only taken for one by name.
func TestChat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(chat+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	task := read(t, path, datasets.Options{Shape: "chat"})[0]
	if task.ID != "c" || task.System != "S" || len(task.Prompt) != 2 || task.Prompt[1].Content != "c" || len(task.Gold) != 3 ||
		task.Gold[0].Reasoning != "r" || string(task.Gold[0].Calls[0].Arguments) != `{"x":1}` || task.Gold[2].Content != "d" {
		t.Errorf("task is %+v", task)
	}
	source, err := datasets.Open(path, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source.Tasks(t.Context()) {
		if err == nil {
			t.Error("without its name the row is a task")
		}
	}
}

// TestOwnShape takes no row for another's that has fields of ours.
func TestOwnShape(t *testing.T) {
	task := taskOf(t, `{"data_source": "gsm8k", "prompt": [{"role": "user", "content": "a"}], "reward_model": {"style": "rule", "ground_truth": "1"}, "verify": {"exact": "b"}}`)
	if len(task.Verify) != 1 || task.Verify[0].Exact == nil || task.Verify[0].Exact[0] != "b" {
		t.Errorf("verify %+v, want the row's own", task.Verify)
	}
}

// TestRules holds that a truth is only compared where comparing is what its rule would do.
func TestRules(t *testing.T) {
	for truth, want := range map[string]string{
		`"1,072"`: "1072", `-2.5`: "-2.5", `"3,5,7"`: "exact", `"0x10"`: "exact", `"[1, 5]"`: "exact", `"1e999"`: "exact",
		`"{\"inputs\": [\"1\"], \"outputs\": [\"2\"]}"`: "none", `"[\"Paris\", \"paris\"]"`: "none", `"[{\"in\": 1}]"`: "none",
	} {
		task := taskOf(t, `{"data_source": "math", "prompt": [{"role": "user", "content": "?"}], "reward_model": {"style": "rule", "ground_truth": `+truth+`}}`)
		got := "none"
		for _, check := range task.Verify {
			if got = "exact"; check.Number != nil {
				got = strconv.FormatFloat(*check.Number, 'g', -1, 64)
			}
		}
		if got != want {
			t.Errorf("ground_truth %s is judged by %s, want %s", truth, got, want)
		}
	}
}

func TestShapeRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`{"instance_id": "x", "repo": "a/b", "patch": "", "problem_statement": "p", "base_commit": "main"}`:                                                        `names no image`,
		`{"instance_id": "a__b-1", "repo": "a/b", "patch": "", "problem_statement": "p", "base_commit": "$(x)"}`:                                                   `base_commit is "$(x)", want the hash`,
		`{"instance_id": "a__b-1", "repo": "a/b", "test_patch": "+++ b/../x\n", "problem_statement": "p", "base_commit": "abcdef0", "FAIL_TO_PASS": ["x"]}`:        `"../x" is not a place`,
		`{"instance_id": "a__b-1", "repo": "a/b", "test_patch": "+++ b/.git/config\n", "problem_statement": "p", "base_commit": "abcdef0", "FAIL_TO_PASS": ["x"]}`: `".git/config" is not a place`,
		`{"instance_id": "a__b-1", "repo": "a/b", "test_patch": "+++ b/x\n", "problem_statement": "p", "base_commit": "abcdef0", "FAIL_TO_PASS": [1]}`:             `a list with a number`,
		`{"conversations": [{"from": "bot", "value": "x"}]}`:                                                                                                       `from is "bot"`,
		`{"conversations": [{"from": "gpt", "value": "x"}]}`:                                                                                                       `no turn of the user`,
		`{"data_source": "x", "prompt": [{"role": "user", "content": "x"}], "reward_model": {}, "images": ["x"]}`:                                                  `images: the prompt has no <image> for 1 of them`,
	} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := datasets.Open(path, datasets.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for task, err := range source.Tasks(t.Context()) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is %+v, %v; want an error with %q", line, task, err, want)
			}
		}
	}
	if _, err := datasets.Open("testdata/shapes.jsonl", datasets.Options{Shape: "ver"}); err == nil || !strings.Contains(err.Error(), `unknown shape "ver" (have chat, hermes,`) {
		t.Errorf("Open with an unknown shape: %v", err)
	}
}

// FuzzShapes takes every row for each of the shapes.
func FuzzShapes(f *testing.F) {
	rows, err := os.ReadFile("testdata/shapes.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(rows) + chat) {
		f.Add(line)
	}
	path := filepath.Join(f.TempDir(), "rows.jsonl")
	f.Fuzz(func(t *testing.T, line string) {
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		for name := range datasets.Shapes() {
			source, err := datasets.Open(path, datasets.Options{SkipBadRows: true, Shape: name})
			if err != nil {
				return
			}
			for task, err := range source.Tasks(t.Context()) {
				if err == nil {
					checkTask(t, task)
				}
			}
		}
	})
}
