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

func TestReadMessages(t *testing.T) {
	want := []episode.Message{
		{Role: "user", Content: "How many lines?"},
		{Role: "assistant", Reasoning: "wc knows", Calls: []episode.Call{{ID: "c1", Name: "terminal", Arguments: `{"command":"wc -l a","timeout":5}`}}},
		{Role: "tool", Content: "3 a 🙂", ToolCallID: "c1", Name: "terminal"},
		{Role: "assistant", Content: "3"},
	}
	files := map[string]string{
		"OpenAI's JSON": `[{"role":"user","content":"How many lines?"},
			{"role":"assistant","content":null,"reasoning_content":"wc knows","tool_calls":[{"id":"c1","type":"function","function":{"name":"terminal","arguments":"{\"command\": \"wc -l a\", \"timeout\": 5}"}}]},
			{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"3 a \ud83d\ude42"}]},{"role":"assistant","content":"3"}]`,
		"YAML": `
- role: user
  content: How many lines?
- {role: assistant, reasoning: wc knows, tool_calls: [{id: c1, name: terminal, arguments: {command: wc -l a, timeout: 5}}]}
- {role: tool, tool_call_id: c1, name: terminal, content: "3 a 🙂"}
- role: assistant
  content: "3"
`,
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			got, err := datasets.ReadMessages(wrote(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadMessagesRefused(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"empty", "  \n", "it is empty"},
		{"no list", `{"role": "user"}`, "an object, want a list"},
		{"empty list", `[]`, "an empty list"},
		{"neither", "a: [", "yaml"},
		{"system", `[{"role":"system","content":"x"}]`, `[0]: role is "system", want user, assistant or tool (a system prompt has its own setting)`},
		{"no content", `[{"role":"user","content":" "}]`, "[0]: content is empty"},
		{"unknown key", `[{"role":"user","content":"x","tool_calls":[]}]`, "[0].tool_calls: unknown key (have content, role)"},
		{"result of nothing", `[{"role":"tool","tool_call_id":"c","content":"x"}]`, `[0]: tool_call_id is "c", and no call of that id waits`},
		{"call without result", `[{"role":"assistant","tool_calls":[{"id":"b","name":"x"},{"id":"a","name":"x"}]},{"role":"user","content":"x"}]`,
			`[1]: the call "a" has no result before it; [1]: the call "b"`},
		{"another tool's name", `[{"role":"assistant","tool_calls":[{"id":"a","name":"x"}]},{"role":"tool","tool_call_id":"a","name":"y","content":"x"}]`,
			`[1]: name is "y", and the call "a" was of "x"`},
		{"a name that is no text", `[{"role":"assistant","tool_calls":[{"id":"a","name":"x"}]},{"role":"tool","tool_call_id":"a","name":7,"content":"x"}]`, `[1].name: a number`},
		{"call at the end", `[{"role":"assistant","tool_calls":[{"id":"a","name":"x"}]}]`, `the end: the call "a" has no result`},
		{"call without id", `[{"role":"assistant","tool_calls":[{"name":"x"}]},{"role":"tool","tool_call_id":"","content":"x"}]`, "[0]: every call needs an id of its own"},
		{"same id", `[{"role":"assistant","tool_calls":[{"id":"a","name":"x"},{"id":"a","name":"x"}]},{"role":"tool","tool_call_id":"a","content":"x"}]`, "[0]: every call needs an id of its own"},
		{"arguments", `[{"role":"assistant","tool_calls":[{"id":"a","name":"x","arguments":[]}]}]`, "[0].tool_calls[0].arguments: a list"},
		{"null", `null`, "want a list"},
		{"odd items", `[1, null, "x"]`, "[0]: a number, want an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := datasets.ReadMessages(wrote(t, tt.give)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ReadMessages() = %v, want it to say %q", err, tt.want)
			}
		})
	}
	if _, err := datasets.ReadMessages(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func wrote(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
