package toolbench_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run/toolbench"
)

func TestFirstDifference(t *testing.T) {
	t.Parallel()
	tests := []struct{ a, b, at, kind string }{
		{`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, "", ""},
		{`{"b":[{"c/d":"x"}]}`, `{"b":[{"c/d":"y"}]}`, "/b/0/c~1d", "other"},
		{`{"elapsed":3}`, `{"elapsed":4}`, "/elapsed", "time"},
		{`{"out":"on 2026-11-12"}`, `{"out":"on 2026-11-13"}`, "/out", "time"},
		{`["a","b"]`, `["b","a"]`, "", "order"},
		{`{"out":"a\nb\n"}`, `{"out":"b\na\n"}`, "/out", "order"},
		{`{"at":"/tmp/x1/f"}`, `{"at":"/tmp/x2/f"}`, "/at", "path"},
		{`{"out":"pid 12"}`, `{"out":"pid 13"}`, "/out", "number"},
		{`{"a":null}`, `{}`, "/a", "other"},
		{`[1,2]`, `[1]`, "", "other"},
	}
	for _, tt := range tests {
		var a, b any
		if err := json.Unmarshal([]byte(tt.a), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.b), &b); err != nil {
			t.Fatal(err)
		}
		got := toolbench.FirstDifference(a, b)
		if got == nil {
			got = &toolbench.Difference{}
		}
		if got.At != tt.at || got.Kind != tt.kind {
			t.Errorf("%s and %s differ at %q (%s), want %q (%s)", tt.a, tt.b, got.At, got.Kind, tt.at, tt.kind)
		}
	}
}

// TestScriptRefused holds that all that is wrong with a file of tests is said at once.
func TestScriptRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tests.yaml")
	text := "tests:\n- {name: a, tool: read_file, want: {status: fine}}\n- {name: a, want: {at: {content: x}}}\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := toolbench.FromScript(path)
	for _, want := range []string{`status "fine"`, `name is "a"`, "tool is missing", "not a JSON pointer"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
}

// TestPlantedCalls holds that neither a planted fault, nor what came behind it, is taken for what a tool does.
func TestPlantedCalls(t *testing.T) {
	t.Parallel()
	calls := []episode.ToolCall{
		{Name: "read_file"}, {Name: "gone"}, {Name: "read_file", Parent: "call_1"}, {Name: "read_file", Via: "tool_call"},
		{Name: "terminal"}, {Name: "read_file", Planted: &episode.Planted{}}, {Name: "terminal"},
	}
	got := toolbench.Repeatable(calls, func(tool string) bool { return tool != "gone" })
	if want := []int{0, 4}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}
