package datasets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
)

// one reads a dataset of one row.
func one(t *testing.T, row string) (*episode.Task, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, []byte(row+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	source, err := datasets.Open(path, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for task, err := range source.Tasks(t.Context()) {
		return task, err
	}
	t.Fatal("no row came")
	return nil, nil
}

func TestMemoryAndUser(t *testing.T) {
	task, err := one(t, `{"prompt":"p","memory":{"memory":["one"," two ","one"],"user":"tabs\n§\nLisbon"},`+
		`"user":{"answers":[{"match":"(?i)color","answer":"Blue."}],"default":"No idea."}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&episode.Memory{Memory: []string{"one", "two"}, User: []string{"tabs", "Lisbon"}}, task.Memory); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&episode.User{Answers: []episode.UserAnswer{{Match: "(?i)color", Answer: "Blue."}}, Default: "No idea."}, task.User); diff != "" {
		t.Error(diff)
	}
	// A column of a table holds JSON as text.
	task, err = one(t, `{"prompt":"p","memory":"{\"memory\":[\"one\"]}","user":"{\"model\":true,\"persona\":\"a cook\"}"}`)
	if err != nil || task.Memory.Memory[0] != "one" || !task.User.Model || task.User.Persona != "a cook" {
		t.Errorf("from text: %+v, %v", task, err)
	}
	if task, err = one(t, `{"prompt":"p","memory":{"memory":[]}}`); err != nil || task.Memory != nil {
		t.Errorf("empty memory: %+v, %v", task, err)
	}
}

func TestMemoryAndUserRefuse(t *testing.T) {
	tests := []struct{ give, want string }{
		{`"memory":["x"]`, "memory: a list, want an object with memory, user"},
		{`"memory":{"memry":["x"]}`, `memory.memry: unknown key, did you mean "memory"? (have memory, user)`},
		{`"memory":{"memory":[1]}`, "memory.memory[0]: a number, want a string"},
		{`"memory":{"memory":["a\n§\nb"]}`, "separates entries"},
		{`"memory":{"memory":[" "]}`, "an entry is empty"},
		{`"memory":{"user":["` + strings.Repeat("ü", 1376) + `"]}`, "1376 characters, over the limit of 1375"},
		{`"user":"alice"`, "user: a string, want an object with answers"},
		{`"user":{}`, "it answers nothing"},
		{`"user":{"model":"gpt"}`, "user: {model: NAME} in the run file"},
		{`"user":{"persona":"x","default":"y"}`, "persona goes with model: true"},
		{`"user":{"model":true,"default":"y"}`, "default is never said"},
		{`"user":{"answers":[{"match":"(","answer":"x"}]}`, "user.answers[0].match"},
		{`"user":{"answers":[{"answer":"x"}]}`, "want both match"},
		{`"user":{"answers":{"a":"b"}}`, "want a list"},
	}
	for _, tt := range tests {
		if _, err := one(t, `{"prompt":"p",`+tt.give+`}`); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("row with %s: %v, want an error with %q", tt.give, err, tt.want)
		}
	}
}
