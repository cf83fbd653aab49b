package scripted_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// TestDemands: what a request says about tools, ends and formats.
func TestDemands(t *testing.T) {
	tk := &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "x"}}, Gold: []episode.Step{
		{Content: "Look.", Calls: []episode.GoldCall{{Name: "a", Arguments: json.RawMessage(`{"path":"1"}`)}, {Name: "b", Arguments: json.RawMessage(`{"path":"2"}`)}}},
		{Content: "The answer."},
	}}
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, tk)
	named := func(name string) any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name}}
	}
	type more = map[string]any
	answered := []any{map[string]any{"role": "user", "content": "x"}, map[string]any{"role": "assistant", "content": "Look."}}
	tests := []struct {
		name   string
		give   more
		status int
		want   string
		finish string
	}{
		{"auto", more{"tool_choice": "auto"}, 200, "Look.|a{\"path\":\"1\"}|b{\"path\":\"2\"}", "tool_calls"},
		{"none", more{"tool_choice": "none"}, 200, "The answer.", "stop"},
		{"required", more{"tool_choice": "required"}, 200, "Look.|a{\"path\":\"1\"}|b{\"path\":\"2\"}", "tool_calls"},
		{"required where the script has none", more{"tool_choice": "required", "messages": answered}, 200, "|a{\"path\":\"\"}", "tool_calls"},
		{"named", more{"tool_choice": named("b")}, 200, "Look.|b{\"path\":\"2\"}", "stop"},
		{"named where the script has none", more{"tool_choice": named("c")}, 200, "|c{\"path\":\"\"}", "stop"},
		{"named and not offered", more{"tool_choice": named("z")}, 400, `tool \"z\" is not among`, ""},
		{"no choice", more{"tool_choice": "any"}, 400, "want none, auto, required", ""},
		{"choice without tools", more{"tool_choice": "none", "tools": nil}, 400, "'tool_choice' is only allowed", ""},
		{"parallel without tools", more{"parallel_tool_calls": true, "tools": nil}, 400, "'parallel_tool_calls' is only allowed", ""},
		{"not parallel", more{"parallel_tool_calls": false}, 200, "Look.|a{\"path\":\"1\"}", "tool_calls"},
		{"stop", more{"stop": "ans"}, 400, "ends where it does", ""},
		{"JSON", more{"response_format": more{"type": "json_object"}}, 400, "no other than text", ""},
		{"no tokens", more{"max_tokens": 0}, 400, "max_tokens is below 1", ""},
		{"alternatives without probabilities", more{"top_logprobs": 2}, 400, "'logprobs' true", ""},
		{"ignored", more{"temperature": 1.5, "top_p": 0.1, "logit_bias": more{"1": 5}, "min_p": 0.1, "frequency_penalty": 1, "user": "me", "metadata": more{}}, 200,
			"Look.|a{\"path\":\"1\"}|b{\"path\":\"2\"}", "tool_calls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := more{"model": "scripted", "messages": short["messages"], "tools": offer("a", "b", "c")}
			maps.Copy(body, tt.give)
			w := post(t, server, "/v1/chat/completions", body)
			if w.Code != tt.status || tt.status != 200 {
				if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
					t.Errorf("%d %s, want %d with %q", w.Code, w.Body, tt.status, tt.want)
				}
				return
			}
			var d document
			json.Unmarshal(w.Body.Bytes(), &d)
			got := *orEmpty(d.Choices[0].Message.Content)
			for _, raw := range d.Choices[0].Message.ToolCalls {
				var call struct {
					Function struct{ Name, Arguments string }
				}
				json.Unmarshal(raw, &call)
				got += "|" + call.Function.Name + call.Function.Arguments
			}
			if got != tt.want || d.Choices[0].Finish != tt.finish {
				t.Errorf("%q (%s), want %q (%s)", got, d.Choices[0].Finish, tt.want, tt.finish)
			}
		})
	}
}

// TestContext refuses what does not fit, in the words of either server, and fills what does.
func TestContext(t *testing.T) {
	need := ask(t, newServer(t, scripted.Config{Policy: scripted.Noop}), short).Usage.Prompt
	for _, tt := range []struct {
		errors     string
		room, want int
		limit      int
		text       string
	}{
		{"openai", need + 100, 200, 0, ""},
		{"openai", need + 100, 200, 100, ""},
		{"openai", need, 400, 0, `resulted in 58 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"`},
		{"openai", need + 9, 400, 10, "However, you requested 68 tokens (58 in the messages, 10 in the completion)"},
		{"vllm", need + 9, 400, 10, `However, you requested 10 output tokens and your prompt contains at least 58 input tokens, for a total of at least 68 tokens.`},
		{"vllm", need, 400, 0, `"type":"BadRequestError","param":"input_tokens","code":400`},
	} {
		server := newServer(t, scripted.Config{Policy: scripted.Noop, Context: tt.room, Errors: tt.errors})
		body := map[string]any{"model": "scripted", "messages": short["messages"]}
		if tt.limit > 0 {
			body["max_tokens"] = tt.limit
		}
		if w := post(t, server, "/v1/chat/completions", body); w.Code != tt.want || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s, %d tokens: %d %s, want %d with %q", tt.errors, tt.room, w.Code, w.Body, tt.want, tt.text)
		}
	}
	full := ask(t, newServer(t, scripted.Config{Policy: scripted.Noop, Context: need + 5}), short)
	if *full.Choices[0].Message.Content != "I can" || full.Choices[0].Finish != "length" {
		t.Errorf("reply = %q (%s), want what there is room for", *full.Choices[0].Message.Content, full.Choices[0].Finish)
	}
}

// TestExamplesBefore: what a harness puts before the task's own first message moves nothing.
func TestExamplesBefore(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, task("t"))
	for _, id := range []string{"t", ""} {
		d := ask(t, server, map[string]any{"model": "scripted", "tools": offer("read_file", "terminal"), "messages": []any{
			map[string]any{"role": "user", "content": "An example"}, map[string]any{"role": "assistant", "content": "An answer"},
			map[string]any{"role": "user", "content": "Fix t"}}}, "X-Trajgen-Task", id)
		if len(d.Choices[0].Message.ToolCalls) != 1 || !strings.Contains(string(d.Choices[0].Message.ToolCalls[0]), "read_file") || d.Usage.Details.Cached != 0 {
			t.Errorf("task %q: %+v, want the first turn", id, d)
		}
	}
}

// TestFaults: each kind of bad answer.
func TestFaults(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Noop})
	for spec, want := range map[string]struct {
		status int
		text   string
	}{
		"types":           {200, `"choices":[{"index":"0"`},
		"empty":           {200, `"choices":[]`},
		"garbage":         {200, "<h1>"},
		"error":           {200, `{"error":{"message":"scripted fault: error"`},
		"quota":           {429, `"code":"insufficient_quota"`},
		"auth":            {401, `"code":"invalid_api_key"`},
		"policy":          {400, `"code":"content_policy_violation"`},
		"filter":          {200, `"content":"I cannot hel"},"finish_reason":"content_filter"`},
		"context":         {400, `"code":"context_length_exceeded"`},
		"402":             {402, `"code":"insufficient_quota"`},
		"529":             {529, `"type":"server_error"`},
		"429;retry-after": {429, `"code":"rate_limit_exceeded"`},
		"cut":             {200, `{"id":"chatcmpl-`},
		"boom":            {400, `"code":"unknown_fault"`},
	} {
		w := post(t, server, "/v1/chat/completions", short, "X-Scripted-Fault", spec)
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) || spec == "cut" && json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s, want %d with %s", spec, w.Code, w.Body, want.status, want.text)
		}
	}
}
