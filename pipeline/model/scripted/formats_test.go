package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// TestToolFormats shows two calls as the models of each format write them.
func TestToolFormats(t *testing.T) {
	tagged := "Look.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"s\":\"ä\\n<\",\"n\":[1,{}]}}\n</tool_call>\n<tool_call>\n{\"name\": \"b\", \"arguments\": {}}\n</tool_call>"
	tests := map[string]string{
		"hermes":      tagged,
		"qwen":        tagged,
		"longcat":     strings.ReplaceAll(tagged, "tool_call>", "longcat_tool_call>"),
		"qwen3_coder": "Look.\n<tool_call>\n<function=a>\n<parameter=s>\nä\n<\n</parameter>\n<parameter=n>\n[1,{}]\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=b>\n</function>\n</tool_call>",
		"mistral":     `Look.[TOOL_CALLS][{"name": "a", "arguments": {"s":"ä\n<","n":[1,{}]}}, {"name": "b", "arguments": {}}]`,
		"llama3_json": "Look.\n" + `{"name": "a", "parameters": {"s":"ä\n<","n":[1,{}]}}; {"name": "b", "parameters": {}}`,
		"llama4_json": "Look.\n" + `{"name": "a", "parameters": {"s":"ä\n<","n":[1,{}]}}` + "\n" + `{"name": "b", "parameters": {}}`,
		"deepseek_v3": "Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{\"s\":\"ä\\n<\",\"n\":[1,{}]}\n```<｜tool▁call▁end｜>\n" +
			"<｜tool▁call▁begin｜>function<｜tool▁sep｜>b\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"deepseek_v3_1": "Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{\"s\":\"ä\\n<\",\"n\":[1,{}]}<｜tool▁call▁end｜>" +
			"<｜tool▁call▁begin｜>b<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"kimi_k2": "Look.<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{\"s\":\"ä\\n<\",\"n\":[1,{}]}<|tool_call_end|>" +
			"<|tool_call_begin|>functions.b:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
		"glm45": "Look.\n<tool_call>a\n<arg_key>s</arg_key>\n<arg_value>ä\n<</arg_value>\n<arg_key>n</arg_key>\n<arg_value>[1,{}]</arg_value>\n</tool_call>\n<tool_call>b\n</tool_call>",
		"glm47": "Look.<tool_call>a<arg_key>s</arg_key><arg_value>ä\n<</arg_value><arg_key>n</arg_key><arg_value>[1,{}]</arg_value></tool_call><tool_call>b</tool_call>",
	}
	tk := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "x"}}, Gold: []episode.Step{{Content: "Look.", Calls: []episode.GoldCall{
		{Name: "a", Arguments: json.RawMessage(`{"s":"ä\n<","n":[1,{}]}`)}, {Name: "b", Arguments: json.RawMessage(`{}`)}}}}}
	for _, format := range scripted.ToolFormats() {
		d := ask(t, newServer(t, scripted.Config{Policy: scripted.Oracle, ToolFormat: format}, tk),
			map[string]any{"model": "scripted", "messages": short["messages"], "tools": offer("a", "b")})
		if diff := cmp.Diff(tests[format], *orEmpty(d.Choices[0].Message.Content)); diff != "" || d.Choices[0].Finish != "stop" || d.Choices[0].Message.ToolCalls != nil {
			t.Errorf("%s (-want +got), finish %s:\n%s", format, d.Choices[0].Finish, diff)
		}
	}
}

// TestBrokenCalls: what is not JSON is written all the same, in every format.
func TestBrokenCalls(t *testing.T) {
	record := []episode.Message{{Role: "assistant", Calls: []episode.Call{{ID: "1", Name: "a", Arguments: `{"path": "x`}, {ID: "2", Name: "b", Arguments: `{}`}}}}
	for _, format := range scripted.ToolFormats() {
		server := newServer(t, scripted.Config{Policy: scripted.Replay, ToolFormat: format, Replay: func(string) ([]episode.Message, bool) { return record, true }})
		d := ask(t, server, map[string]any{"model": "scripted", "messages": short["messages"], "tools": offer("a", "b")})
		if got := *orEmpty(d.Choices[0].Message.Content); !strings.Contains(got, `{"path": "x`) || strings.Count(got, "b") < 1 {
			t.Errorf("%s: %q", format, got)
		}
	}
}

func TestReasoningFields(t *testing.T) {
	tk := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "x"}}, Gold: []episode.Step{{Content: "answer", Reasoning: "thought"}}}
	tests := map[string]string{
		scripted.ReasoningContent: `"content":"answer","reasoning_content":"thought"}`,
		scripted.ReasoningPlain:   `"content":"answer","reasoning":"thought"}`,
		scripted.ReasoningDetails: `"content":"answer","reasoning":"thought","reasoning_details":[{"type":"reasoning.text","text":"thought","index":0}]}`,
		scripted.ReasoningTags:    `"content":"<think>\nthought\n</think>\n\nanswer"}`,
	}
	for _, field := range scripted.ReasoningFields() {
		server := newServer(t, scripted.Config{Policy: scripted.Oracle, ReasoningAs: field}, tk)
		if w := post(t, server, "/v1/chat/completions", short); !strings.Contains(w.Body.String(), tests[field]) {
			t.Errorf("%s: %s, want %s", field, w.Body, tests[field])
		}
		none := map[string]any{"model": "scripted", "messages": short["messages"], "reasoning_effort": "none"}
		if w := post(t, server, "/v1/chat/completions", none); strings.Contains(w.Body.String(), "thought") {
			t.Errorf("%s: %s, want no reasoning", field, w.Body)
		}
	}
}
