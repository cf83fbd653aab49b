package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// TestRawCalls decides whether the content of a reply is read for calls.
func TestRawCalls(t *testing.T) {
	const hermes = `Ok.<tool_call>{"name":"terminal","arguments":{"a":1}}</tool_call>`
	const llama = `{"name": "terminal", "parameters": {"a":1}}`
	const cut = `<tool_call>{"name":"terminal","arguments":{"a":"x`
	found := []episode.Call{{ID: "call_1_0", Name: "terminal", Arguments: `{"a":1}`}}
	native := `"tool_calls":[{"id":"n","function":{"name":"terminal","arguments":"{}"}}]`
	tests := []struct {
		name, model, format, content, more string
		finish                             string
		noTools                            bool
		want                               episode.Message
		repairs                            []string
	}{
		{name: "named", format: "hermes", content: hermes, want: episode.Message{Content: "Ok.", Calls: found}, repairs: []string{"parsed:hermes"}},
		{name: "by the model's name", model: "Qwen/Qwen3-8B", format: "auto", content: hermes, want: episode.Message{Content: "Ok.", Calls: found}, repairs: []string{"parsed:qwen"}},
		{name: "another model", model: "gpt-4o", format: "auto", content: hermes, want: episode.Message{Content: "Ok.", Calls: found}, repairs: []string{"parsed:hermes"}},
		{name: "a model of another format", model: "Qwen/Qwen3-8B", format: "auto", content: "Ok.\n<minimax:tool_call><invoke name=\"terminal\"><parameter name=\"a\">1</parameter></invoke></minimax:tool_call>",
			want: episode.Message{Content: "Ok.", Calls: []episode.Call{{ID: "call_1_0", Name: "terminal", Arguments: `{"a": 1}`}}}, repairs: []string{"parsed:minimax_m2"}},
		{name: "a tool that was not offered", model: "gpt-4o", format: "auto", content: strings.ReplaceAll(hermes, "terminal", "other"), want: episode.Message{Content: strings.ReplaceAll(hermes, "terminal", "other")}},
		{name: "an example in an answer", model: "gpt-4o", format: "auto", content: "Write `" + hermes + "`.", want: episode.Message{Content: "Write `" + hermes + "`."}},
		{name: "native", model: "Qwen/Qwen3-8B", format: "native", content: hermes, want: episode.Message{Content: hermes}},
		{name: "no tools offered", format: "hermes", content: hermes, noTools: true, want: episode.Message{Content: hermes}},
		{name: "native calls come first", format: "hermes", content: hermes, more: native,
			want: episode.Message{Content: hermes, Calls: []episode.Call{{ID: "n", Name: "terminal", Arguments: "{}"}}}},
		{name: "a reply of JSON", model: "meta-llama/Llama-3.3-70B-Instruct", format: "auto", content: llama, want: episode.Message{Calls: found}, repairs: []string{"parsed:llama3_json"}},
		{name: "JSON within a text is not unmistakable", model: "meta-llama/Llama-3.3-70B-Instruct", format: "auto", content: "As " + llama, want: episode.Message{Content: "As " + llama}},
		{name: "JSON within a text of a model that was named", format: "llama3_json", content: "As " + llama, want: episode.Message{Content: "As", Calls: found}, repairs: []string{"parsed:llama3_json"}},
		{name: "behind thinking", format: "hermes", content: "<think>" + hermes + "</think>" + hermes, want: episode.Message{Reasoning: hermes, Content: "Ok.", Calls: found}, repairs: []string{"parsed:hermes", "thinking in the content"}},
		{name: "ids of Mistral", format: "mistral", content: `[TOOL_CALLS]terminal{"a":1}`, want: episode.Message{Calls: []episode.Call{{ID: "000010000", Name: "terminal", Arguments: `{"a":1}`}}}, repairs: []string{"parsed:mistral"}},
		{name: "cut", format: "hermes", content: cut, finish: "length",
			want:    episode.Message{Calls: []episode.Call{{ID: "call_1_0", Name: "terminal", Arguments: `{"a":"x`, Cut: true}}},
			repairs: []string{"parsed:hermes", "truncated call: terminal"}},
		{name: "nothing but a beginning", format: "hermes", content: "<tool_call>{", finish: "length", want: episode.Message{Content: "<tool_call>{"}, repairs: []string{"truncated call"}},
		{name: "a native call that is cut", content: "", finish: "length", more: `"tool_calls":[{"id":"n","function":{"name":"terminal","arguments":"{\"a\":1"}}]`,
			want:    episode.Message{Calls: []episode.Call{{ID: "n", Name: "terminal", Arguments: `{"a":1`, Cut: true}}},
			repairs: []string{"truncated call: terminal"}},
		{name: "a closing tag without its opening one", content: "hm\n</think>\nOk.", want: episode.Message{Reasoning: "hm", Content: "Ok."}, repairs: []string{"thinking in the content"}},
		{name: "the same of a model that is known to write none", model: "gpt-4o", content: "hm\n</think>\nOk.", want: episode.Message{Content: "hm\n</think>\nOk."}},
		{name: "and beside a reasoning", content: "a </think> b", more: `"reasoning":"hm"`, want: episode.Message{Reasoning: "hm", Content: "a </think> b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			content, _ := json.Marshal(tt.content)
			if tt.more != "" {
				tt.more = "," + tt.more
			}
			if tt.finish == "" {
				tt.finish = "stop"
			}
			url := says(t, 200, fmt.Sprintf(`{"choices":[{"message":{"content":%s%s},"finish_reason":%q}]}`, content, tt.more, tt.finish))
			req := model.Request{Tools: []json.RawMessage{terminal}}
			if tt.noTools {
				req.Tools = nil
			}
			got := reply(t, open(t, model.Config{Settings: model.Settings{Name: tt.model, BaseURL: url, ToolFormat: tt.format}}), req)
			tt.want.Role = "assistant"
			if diff := cmp.Diff(tt.want, got.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.repairs, got.Repairs); diff != "" {
				t.Errorf("repairs (-want +got):\n%s", diff)
			}
			raw := "" // where the message has not all of the content
			if got.Message.Content != tt.content {
				raw = fmt.Sprintf(`{"content":%s}`, content)
			}
			if got.Raw != raw {
				t.Errorf("raw = %s, want %s", got.Raw, raw)
			}
		})
	}
}

// TestRawCallsOfTheScriptedServer reads back what the server writes in every format that it knows, told which and not: the name of the
// model says nothing.
func TestRawCallsOfTheScriptedServer(t *testing.T) {
	tool := json.RawMessage(`{"type":"function","function":{"name":"write","parameters":{"type":"object","properties":{
		"text":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array"},"yes":{"type":"boolean"}}}}}`)
	want := []string{`{"text":"</tool_call> \"ü\"\n{\"a\": [1]}\n","n":12,"list":[1,{"b":null}],"yes":true}`, `{"text":"7"}`}
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "I write.", Calls: []episode.GoldCall{
		{Name: "write", Arguments: json.RawMessage(want[0])}, {Name: "write", Arguments: json.RawMessage(want[1])},
	}}, {Content: "Done."}}}
	for _, format := range scripted.ToolFormats() {
		t.Run(format, func(t *testing.T) {
			url := play(t, scripted.Config{Policy: "oracle", Model: "m", ToolFormat: format}, task)
			for _, told := range []string{format, model.ToolFormatAuto} {
				client := open(t, model.Config{Settings: model.Settings{BaseURL: url, ToolFormat: told, Stream: strings.Contains(format, "3")}, TraceHeaders: true})
				req := model.Request{Messages: hello, Tools: []json.RawMessage{tool}, Asker: model.Asker{Task: "t"}}
				if told != format && strings.HasPrefix(format, "llama") { // JSON behind a text may be an answer of JSON
					if _, err := client.Complete(t.Context(), req); asError(t, err).Class != model.ClassUnread {
						t.Errorf("error = %v", err)
					}
					continue
				}
				got := reply(t, client, req)
				if got.Message.Content != "I write." || len(got.Message.Calls) != len(want) {
					t.Fatalf("message = %+v", got.Message)
				}
				for i, call := range got.Message.Calls {
					var a, b any
					if err := json.Unmarshal([]byte(call.Arguments), &a); err != nil {
						t.Fatal(err)
					}
					json.Unmarshal([]byte(want[i]), &b)
					if diff := cmp.Diff(b, a); diff != "" || call.Name != "write" || call.Cut {
						t.Errorf("call %+v (-want +got):\n%s", call, diff)
					}
				}
				if r := got.Repairs; len(r) != 1 || r[0] != "parsed:"+format && (told == format || !strings.HasPrefix(r[0], "parsed:")) {
					t.Errorf("told %s: repairs %q", told, r)
				}
			}
		})
	}
}
