package datasets_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// FuzzRow feeds rows through the plain decoder and a mapping: garbage is an error, and what is taken is a whole task
// that can be written and read again.
func FuzzRow(f *testing.F) {
	forms, err := os.ReadFile("testdata/forms.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(forms)) {
		f.Add(line)
	}
	f.Add(`{"prompt": "a", "verify": {"tests": {"/tests/../../x": ""}, "command": "y"}}`)
	f.Add(`{"question": "q", "answer": "1 #### 2"}`)
	for _, row := range unusual {
		f.Add(row)
	}
	gsm8k, err := datasets.LoadMapping("gsm8k")
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "rows.jsonl")
	f.Fuzz(func(t *testing.T, line string) {
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, mapping := range []*datasets.Mapping{nil, gsm8k} {
			source, err := datasets.Open(path, datasets.Options{SkipBadRows: true, Map: mapping})
			if err != nil {
				return
			}
			for task, err := range source.Tasks(t.Context()) {
				if err != nil {
					continue
				}
				checkTask(t, task)
			}
			sameInOrder(t, path, datasets.Options{Map: mapping})
		}
	})
}

func checkTask(t *testing.T, task *episode.Task) {
	t.Helper()
	if task.ID == "" || len(task.Prompt) == 0 {
		t.Errorf("a task without id or prompt: %+v", task)
	}
	for name := range task.Files {
		if !filepath.IsLocal(name) {
			t.Errorf("a file outside the working directory: %q", name)
		}
	}
	for _, check := range task.Verify {
		for name := range check.Tests {
			if !filepath.IsLocal(strings.TrimPrefix(name, "/tests/")) {
				t.Errorf("a verifier's file outside its directories: %q", name)
			}
		}
	}
	encoded, err := json.Marshal(task)
	if err != nil {
		t.Fatalf("marshal %+v: %v", task, err)
	}
	var again episode.Task
	if err := json.Unmarshal(encoded, &again); err != nil {
		t.Errorf("unmarshal %s: %v", encoded, err)
	}
}

func BenchmarkTasks(b *testing.B) {
	row := `{"question": "How many sacks does a mill grind in 25 hours at 50 an hour?", "answer": "50*25=<<50*25=1250>>1250\n#### 1,250"}` + "\n"
	path := filepath.Join(b.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat(row, 1000)), 0o600); err != nil {
		b.Fatal(err)
	}
	gsm8k, err := datasets.LoadMapping("gsm8k")
	if err != nil {
		b.Fatal(err)
	}
	source, err := datasets.Open(path, datasets.Options{Map: gsm8k})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range source.Tasks(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// FuzzYAML feeds mappings and files of tasks: a slip in them is an error, never a panic.
func FuzzYAML(f *testing.F) {
	f.Add("# nothing\n")
	f.Add("---\n")
	f.Add("- {id: a, prompt: b, when: 2026-01-02, n: 1e3, ok: yes, none: ~}\n")
	f.Add("fields: {prompt: '{{.a}}', gold: !json '{{json .b}}'}\nkeep: [c]\n")
	f.Add("fields: {prompt: '{{range $k, $v := .}}{{with index $ \"a\"}}{{.b}}{{end}}{{else}}x{{end}}{{template \"t\" .}}'}\n")
	f.Add("fields: {prompt: &a x, ? [b] : *a, <<: {c: d}}\n")
	path := filepath.Join(f.TempDir(), "tasks.yaml")
	rows := filepath.Join(f.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"a": {"b": "c"}, "b": [1], "c": null}`), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		mapping, err := datasets.ParseMapping("fuzz", []byte(text))
		if (mapping == nil) == (err == nil) {
			t.Errorf("ParseMapping gives a mapping (%t) and the error %v", mapping != nil, err)
		}
		for file, options := range map[string]datasets.Options{path: {SkipBadRows: true}, rows: {Map: mapping}} {
			source, err := datasets.Open(file, options)
			if err != nil {
				t.Fatal(err)
			}
			for task, err := range source.Tasks(t.Context()) {
				if err == nil {
					checkTask(t, task)
				}
			}
		}
	})
}
