package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/export"
	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

// TestShareGPTEnvelope breaks the envelope in every place: a row reads back the same, or there is none.
func TestShareGPTEnvelope(t *testing.T) {
	tags := "<tools></tools><think></think>\n</think>\n<tool_call>\n</tool_call>\n<tool_response>\n</tool_response>\n"
	quotedTags, _ := json.Marshal(tags)
	call := func(name, arguments string) *episode.Episode {
		m := calling("a")
		m.Calls[0].Name, m.Calls[0].Arguments = name, arguments
		return chat(user("hi"), m, result("a", "x"), episode.Message{Role: "assistant", Content: "done"})
	}
	said := func(reasoning, content string) *episode.Episode {
		return chat(user("hi"), episode.Message{Role: "assistant", Reasoning: reasoning, Content: content})
	}
	heard := func(content string) *episode.Episode {
		return chat(user("hi"), calling("a"), result("a", content), episode.Message{Role: "assistant", Content: "done"})
	}
	tools := said("", "ok")
	tools.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","description":` + string(quotedTags) + `,"parameters":{"type":"object","required":["a"]}}}`)}
	tests := []struct {
		name    string
		give    *episode.Episode
		refused bool
	}{
		{"tags in arguments", call("f", `{"a":`+string(quotedTags)+`}`), false},
		{"tags in arguments that are not JSON", call("f", tags), false},
		{"tags in a name", call(tags, "{}"), false},
		{"arguments that are a JSON text", call("f", `"x"`), false},
		{"arguments that are empty", call("f", ""), false},
		{"large numbers and a key twice", call("f", `{"n":12345678901234567890,"f":1e400,"n":-0.10}`), false},
		{"tags in a result", heard(tags), false},
		{"tags in a JSON result", heard(`{"output":` + string(quotedTags) + `}`), false},
		{"a list", heard(` [1, {"a": "<tool_call>"}]`), false},
		{"a result that looks like JSON", heard(`{"output": `), false},
		{"an empty result", heard(""), false},
		{"a JSON text as result", heard(`"{}"`), false},
		{"tags in what the user says", chat(user(tags), episode.Message{Role: "assistant", Content: "ok"}), false},
		{"tags in the schema of a tool", tools, false},
		{"line breaks around thinking", said("\n\nx\n\n", "\n\ny\n"), false},
		{"only thinking", said("x", ""), false},
		{"nothing at all", said("", ""), false},
		{"content before calls", chat(user("hi"), episode.Message{Role: "assistant", Content: "\n text\n", Calls: calling("a", "b").Calls},
			result("b", "2"), result("a", "1"), episode.Message{Role: "assistant", Content: "done"}), false},
		{"</think> in thinking", said("a</think>b", "c"), true},
		{"<think> in content", said("", "a<think>b"), true},
		{"<tool_call> in content", said("", "a\n<tool_call>\n{}\n</tool_call>"), true},
		{"<tool_response> in content", said("", "a <tool_response> b"), false},
		{"not UTF-8", said("", "a\xffb"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, system := range []string{"tools", "own"} {
				path := exported(t, "sharegpt", []*episode.Episode{tt.give}, export.Options{Set: map[string]string{"system": system}})
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if refused := len(data) == 0; refused != tt.refused {
					t.Fatalf("refused = %v, want %v: %s", refused, tt.refused, data)
				}
				if rows, err := export.CheckShareGPT(bytes.NewReader(data)); err != nil || rows != 1 && !tt.refused {
					t.Errorf("%d rows, %v", rows, err)
				}
				for _, row := range readRows(t, path) {
					checkEnvelope(t, row.Conversations)
				}
			}
		})
	}
}

// checkEnvelope counts the tags as a reader does that knows no JSON.
func checkEnvelope(t *testing.T, turns []export.ShareGPTTurn) {
	t.Helper()
	for _, turn := range turns {
		for _, tag := range map[string][]string{"gpt": {"think", "tool_call"}, "tool": {"tool_response"}}[turn.From] {
			open, end := strings.Count(turn.Value, "<"+tag+">"), strings.Count(turn.Value, "</"+tag+">")
			lines := 0
			for line := range strings.Lines(turn.Value) {
				if strings.TrimSpace(line) == "<"+tag+">" {
					lines++
				}
			}
			if open != end || open != lines {
				t.Errorf("%d times <%s>, %d times its end, %d lines of it alone: %s", open, tag, end, lines, turn.Value)
			}
		}
	}
}

// TestShareGPTReads holds what a row reads back as.
func TestShareGPTReads(t *testing.T) {
	ep := sinktest.Episode(4, 0)
	rows := readRows(t, exported(t, "sharegpt", []*episode.Episode{ep}, export.Options{Set: map[string]string{"system": "own"}}))
	got, err := export.ReadShareGPT(rows[0].Conversations)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantChat(ep.Messages[1:], true)[1].Calls[1], got.Messages[1].Calls[1]); diff != "" || got.System != ep.Messages[0].Content {
		t.Errorf("system %q, calls (-want +got):\n%s", got.System, diff)
	}
	if content := got.Messages[2].Content; content != ep.Messages[3].Content {
		t.Errorf("result %q, want %q", content, ep.Messages[3].Content)
	}
}

// TestShareGPTKeepsWhiteSpace: what the model said is in the row to its last byte.
func TestShareGPTKeepsWhiteSpace(t *testing.T) {
	for _, content := range []string{"", "done\n\n", " \n", "\n\tdone ", "\u00a0"} {
		ep := chat(user("hi"), episode.Message{Role: "assistant", Content: content, Reasoning: "x\n"})
		rows := readRows(t, exported(t, "sharegpt", []*episode.Episode{ep}, export.Options{}))
		got, err := export.ReadShareGPT(rows[0].Conversations)
		if err != nil {
			t.Fatal(err)
		}
		if last := got.Messages[len(got.Messages)-1]; last.Content != content || last.Reasoning != "x\n" {
			t.Errorf("%q reads back as %q, thinking %q", content, last.Content, last.Reasoning)
		}
	}
}

// TestShareGPTCounts holds that calls are counted by how they ended, and that every row has every tool.
func TestShareGPTCounts(t *testing.T) {
	one, other := plainEpisode(), plainEpisode()
	one.Calls = []episode.ToolCall{
		{ID: "a", Name: "read", Status: episode.CallOK, Result: `{"error":"a file with this text"}`},
		{ID: "b", Name: "read", Status: episode.CallTimeout, Result: `{"output":""}`},
		{ID: "b.1", Parent: "b", Name: "nested", Status: episode.CallError},
		{ID: "c", Name: "raed", Status: episode.CallUnknownTool},
	}
	other.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"write","parameters":{}}}`)}
	rows := readRows(t, exported(t, "sharegpt", []*episode.Episode{one, other}, export.Options{}))
	for i, want := range []map[string]int{{"read": 1, "unknown_tool": 1, "write": 0}, {"read": 0, "unknown_tool": 0, "write": 0}} {
		if diff := cmp.Diff(want, rows[i].ToolErrors); diff != "" {
			t.Errorf("row %d: tool_error_counts (-want +got):\n%s", i, diff)
		}
		if names := slices.Sorted(maps.Keys(rows[i].ToolStats)); !slices.Equal(names, []string{"read", "unknown_tool", "write"}) {
			t.Errorf("row %d: tool_stats of %v", i, names)
		}
	}
	if reads := rows[0].ToolStats["read"].(map[string]any); reads["count"] != 2.0 || reads["success"] != 1.0 {
		t.Errorf("read: %v", reads)
	}
}

// Names that a stranger's file invents do not make every row longer without end.
func TestShareGPTBoundsTheTools(t *testing.T) {
	ep := plainEpisode()
	ep.Tools = nil
	for i := range 5000 {
		ep.Tools = append(ep.Tools, json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":"f%d","parameters":{}}}`, i)))
	}
	sink, err := export.Open("sharegpt", filepath.Join(t.TempDir(), "out.jsonl"), export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(t.Context(), sinktest.Slice([]*episode.Episode{ep}), sink); err == nil || !strings.Contains(err.Error(), "more than 4096 tools") {
		t.Errorf("5,000 tools: %v", err)
	}
}

func TestCheckShareGPTSaysWhatIsWrong(t *testing.T) {
	row := func(turns string) string {
		return `{"prompt_index":0,"conversations":[` + turns + `],"metadata":{},"completed":true,"partial":false,"api_calls":1,"toolsets_used":[],"tool_stats":{},"tool_error_counts":{}}`
	}
	system := `{"from":"system","value":"<tools>\n[]\n</tools>"}`
	gpt := func(value string) string { return row(system + `,{"from":"gpt","value":"` + value + `"}`) }
	tests := []struct{ give, want string }{
		{"{", "line 1: no JSON object"},
		{"{}", "no prompt_index\nno conversations"},
		{row(""), "no system turn"},
		{row(`{"from":"system","value":"be good"}`), "no list of tools"},
		{row(`{"from":"system","value":"<tools>\n[\n</tools>"}`), "not a JSON list"},
		{row(system + `,{"from":"assistant","value":""}`), `is from "assistant"`},
		{row(system + `,{"from":"tool","value":""}`), "behind no turn of gpt"},
		{gpt("hello"), "does not begin with <think>"},
		{gpt(`<think>\nhello`), "<think> without </think>"},
		{gpt(`<think>\n</think>\n<tool_call>\n{}`), "<tool_call> without </tool_call>"},
		{gpt(`<think>\n</think>\n<tool_call>\n{\n</tool_call>`), "not a JSON object with name"},
		{gpt(`<think>\n</think>\n<tool_call>\n{}\n</tool_call> and on`), "something else than <tool_call>"},
		{gpt(`<think>\n</think>\nhi </tool_call>`), "</tool_call> in the plain text"},
		{row(system + `,{"from":"gpt","value":"<think>\n</think>"},{"from":"tool","value":"<tool_response>\n{}\n</tool_response>"}`), "1 results of 0 calls"},
		{`{"tool_stats":{"f":{"count":2,"success":1,"failure":0}},"tool_error_counts":{"f":3}}`, `tool "f": 2 calls, 1 successes, 0 failures, 3 in`},
	}
	for _, tt := range tests {
		if _, err := export.CheckShareGPT(strings.NewReader(tt.give + "\n")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.give, err, tt.want)
		}
	}
}

// FuzzShareGPT holds that a row reads back the same whatever is in it, or is refused.
func FuzzShareGPT(f *testing.F) {
	f.Add("think", "content", `{"a":1}`, `{"output":"</tool_response>"}`, "hi")
	f.Add("</think>", "<tool_call>\n", "<", `[1]`, "\n")
	f.Fuzz(func(t *testing.T, reasoning, content, arguments, heard, asked string) {
		m := calling("a", "b")
		m.Reasoning, m.Content, m.Calls[0].Arguments, m.Calls[1].Name = reasoning, content, arguments, asked
		ep := chat(user(asked), m, result("a", heard), result("b", content), episode.Message{Role: "assistant", Content: content})
		path := exported(t, "sharegpt", []*episode.Episode{ep}, export.Options{})
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.CheckShareGPT(bytes.NewReader(data)); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, row := range readRows(t, path) {
			checkEnvelope(t, row.Conversations)
			got, err := export.ReadShareGPT(row.Conversations)
			if err != nil || got.Messages[1].Reasoning != reasoning || got.Messages[1].Content != content || got.Messages[0].Content != asked {
				t.Fatalf("reads back as %+v, %v", got.Messages, err)
			}
		}
	})
}
