package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

type spelledArgs struct {
	_     struct{}      `idle:"encoding=utf-8,verbose"`
	Path  string        `json:"path" alias:"file_path,filename"`
	From  int           `json:"from,omitempty" alias:"start_line" default:"1"`
	Lines int           `json:"lines,omitempty" alias:"count" last:"from:end_line"`
	Edits []spelledEdit `json:"edits,omitempty"`
}

type spelledEdit struct {
	Old string `json:"old" alias:"old_str"`
}

func TestSpellings(t *testing.T) {
	tool := registry.Define(registry.Definition{Name: "x", Toolset: "x"},
		func(_ context.Context, _ *registry.Env, args spelledArgs) (any, error) { return args, nil })
	if text := string(tool.Parameters); strings.Contains(text, "file_path") || strings.Contains(text, "encoding") {
		t.Errorf("a model is shown other names: %s", text)
	}
	for _, tt := range []struct {
		give, given string // given "" is refused
		flags       string
	}{
		{`{"file_path":"a"}`, `{"path":"a","from":1}`, "renamed:file_path"},
		{`{"filePath":"a","START-LINE":"3"}`, `{"path":"a","from":3}`, "renamed:filePath renamed:START-LINE from"},
		{`{"path":"a","filename":"a"}`, `{"path":"a","from":1}`, "renamed:filename"},
		{`{"path":"a","filename":null}`, `{"path":"a","from":1}`, "ignored:filename"},
		{`{"end_line":"20","path":"a","start_line":11}`, `{"path":"a","from":11,"lines":10}`, "renamed:start_line renamed:end_line"},
		{`{"end_line":20,"path":"a"}`, `{"path":"a","from":1,"lines":20}`, "renamed:end_line"},
		{`{"path":"a","end_line":20,"from":null,"lines":20}`, `{"path":"a","from":1,"lines":20}`, "renamed:end_line"},
		{`{"path":"a","edits":[{"old_str":"b"}]}`, `{"path":"a","from":1,"edits":[{"old":"b"}]}`, "renamed:edits[0].old_str"},
		{`{"path":"a","description":"why","thought":{"a":1}}`, `{"path":"a","from":1}`, "ignored:description ignored:thought"},
		{`{"path":"a","encoding":"UTF-8","verbose":[1]}`, `{"path":"a","from":1}`, "ignored:encoding ignored:verbose"},
		{`{"path":"\ud800","verbose":"\uDE00"}`, `{"path":"` + "\uFFFD" + `","from":1}`, "ignored:verbose surrogate:path surrogate:verbose"},
		{`{"path":"\\\ud83d\ude00\ufffd\\ud800"}`, `{"path":"\\😀` + "\uFFFD" + `\\ud800","from":1}`, ""},

		{`{"path":"a","filename":"b"}`, "", ""},
		{`{"file_path":"a","filename":"b"}`, "", ""},
		{`{"path":"a","encoding":"latin-1"}`, "", ""},
		{`{"path":"a","start_line":5,"end_line":4}`, "", ""},
		{`{"path":"a","end_line":-1}`, "", ""},
		{`{"path":"a","end_line":9,"lines":3}`, "", ""},
		{`{"path":"a","edits":[{"old":"b","description":"c"}]}`, "", ""},
		{`{"path":"a","append":true}`, "", ""},
		{`{"path":"a","line":3}`, "", ""},
	} {
		got := call(t, session(t, registry.SessionConfig{}, tool), "x", tt.give)
		if tt.given == "" {
			if got.Status != episode.CallInvalidArguments || !strings.Contains(got.Result, "an argument that the tool does not have") {
				t.Errorf("%s: %s: %s", tt.give, got.Status, got.Result)
			}
			continue
		}
		var want, given spelledArgs
		if err := json.Unmarshal([]byte(tt.given), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got.Result), &given); err != nil || got.Status != episode.CallOK {
			t.Errorf("%s: %s", tt.give, got.Result)
		}
		if diff := cmp.Diff(want, given); diff != "" || strings.Join(got.Coerced, " ") != tt.flags {
			t.Errorf("%s: coerced %q, want %q (-want +given):\n%s", tt.give, got.Coerced, tt.flags, diff)
		}
	}
	got := call(t, session(t, registry.SessionConfig{}, tool), "x", `{"path":"a","line":3}`)
	if !strings.Contains(got.Result, "line: expected one of edits, from, lines, path; did you mean lines?, got") {
		t.Errorf("what would be right is not said: %s", got.Result)
	}
}

// A schema from elsewhere says itself what it takes: what it leaves open is given to the tool as it came.
func TestUnknownArgumentsOfSchemaFromElsewhere(t *testing.T) {
	for schema, want := range map[string]episode.CallStatus{
		``: episode.CallOK, `,"additionalProperties":true`: episode.CallOK, `,"additionalProperties":{"type":"string"}`: episode.CallOK,
		`,"additionalProperties":false`: episode.CallInvalidArguments,
	} {
		tool, err := registry.DefineSchema(registry.Definition{Name: "echo", Toolset: "mcp-x"},
			json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}`+schema+`}`),
			func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
				return arguments, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		const give = `{"X":"a","description":"b"}`
		got := call(t, session(t, registry.SessionConfig{}, tool), "echo", give)
		if got.Status != want || want == episode.CallOK && got.Result != give || want != episode.CallOK && !strings.Contains(got.Result, "one of x") {
			t.Errorf("%s: %s: %s", schema, got.Status, got.Result)
		}
	}
}
