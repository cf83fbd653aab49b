package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// TestTokenRequests shows what each server is asked.
func TestTokenRequests(t *testing.T) {
	tests := []struct {
		server string
		stream bool
		want   []string
	}{
		{"", false, nil},
		{"vllm", false, []string{"logprobs", "return_token_ids"}},
		{"vllm", true, []string{"logprobs", "return_token_ids"}},
		{"sglang", false, []string{"logprobs", "return_meta_info", "return_prompt_token_ids", "return_token_ids"}},
		{"llamacpp", true, []string{"logprobs"}},
		{"auto", false, []string{"logprobs", "return_meta_info", "return_prompt_token_ids", "return_token_ids"}},
		{"auto", true, []string{"logprobs", "return_token_ids"}}, // SGLang refuses its own in a stream
	}
	for _, tt := range tests {
		var body map[string]json.RawMessage
		url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			json.NewDecoder(r.Body).Decode(&body)
			io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
		})
		reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url, TokenIDs: tt.server, Stream: tt.stream}}), model.Request{})
		var got []string
		for name, value := range body {
			if string(value) == "true" && name != "stream" {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, stream %v: asked for %v, want %v", tt.server, tt.stream, got, tt.want)
		}
	}
}

func TestTokenSettings(t *testing.T) {
	for _, tt := range []struct {
		cfg  model.Config
		want string
	}{
		{model.Config{Settings: model.Settings{TokenIDs: "vlm"}}, "want one of auto, llamacpp, sglang, vllm"},
		{model.Config{Settings: model.Settings{TokenIDs: "sglang", Stream: true}}, "want no stream"},
		{model.Config{Settings: model.Settings{TokenIDs: "auto", BaseURL: "https://api.openai.com/v1"}}, "api.openai.com sends no token ids"},
	} {
		tt.cfg.Name = "m"
		if tt.cfg.BaseURL == "" {
			tt.cfg.BaseURL = "http://localhost/v1"
		}
		if err := tt.cfg.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Validate(%+v) = %v, want %q in it", tt.cfg, err, tt.want)
		}
	}
}

// TestTokenReplies reads the ids where each server puts them, and what no trainer should be given.
func TestTokenReplies(t *testing.T) {
	whole := episode.Tokens{Prompt: episode.IDs{1, 2}, Completion: episode.IDs{3, 4}, Logprobs: []float32{-0.5, -1}}
	const content = `"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"b","logprob":-3}]},{"token":"b","logprob":-1}]}`
	tests := []struct {
		name          string
		reply, choice string // fields of them
		want          episode.Tokens
		repairs       []string
	}{
		{"vLLM", `"prompt_token_ids":[1,2]`, `"token_ids":[3,4],` + content, whole, nil},
		{"vLLM with ids as tokens", "", `"logprobs":{"content":[{"token":"token_id:3","logprob":-0.5},{"token":"token_id:4","logprob":-1}]}`,
			episode.Tokens{Completion: whole.Completion, Logprobs: whole.Logprobs}, nil},
		{"SGLang", "", `"prompt_token_ids":[1,2],"token_ids":[3,4],` + content + `,"meta_info":{"output_token_logprobs":[[-0.5,3,"a"],[-1,4,null]]}`, whole, nil},
		{"older SGLang", "", `"prompt_token_ids":[1,2],` + content + `,"meta_info":{"output_token_logprobs":[[-0.5,3,"a"],[-1,4,null]]}`, whole, nil},
		{"SGLang's meta info alone", "", `"prompt_token_ids":[1,2],"logprobs":null,"meta_info":{"output_token_logprobs":[[-0.5,3],[-1,4]]}`, whole, nil},
		{"llama.cpp", "", `"logprobs":{"content":[{"id":3,"token":"a","logprob":-0.5},{"id":4,"token":"b","logprob":-1}]}`,
			episode.Tokens{Completion: whole.Completion, Logprobs: whole.Logprobs}, nil},
		{"Together", "", `"logprobs":{"token_ids":[3,4],"tokens":["a","b"],"token_logprobs":[-0.5,-1]}`,
			episode.Tokens{Completion: whole.Completion, Logprobs: whole.Logprobs}, nil},
		{"OpenAI", "", content, episode.Tokens{Logprobs: whole.Logprobs}, nil},
		{"null everywhere", `"prompt_token_ids":null`, `"token_ids":null,"logprobs":null,"meta_info":null`, episode.Tokens{}, nil},
		{"odd types everywhere", `"prompt_token_ids":{},"metadata":7,"provider":{},"system_fingerprint":[]`, `"token_ids":"AQ==","logprobs":[1],"meta_info":"x"`, episode.Tokens{},
			[]string{"dropped prompt ids: not a list of whole numbers from 0 to 2147483647: {}", `dropped token ids: not a list of whole numbers from 0 to 2147483647: "AQ=="`}},

		{"ids as floats", `"prompt_token_ids":[1.0,2.0]`, `"token_ids":[3,4.5]`, episode.Tokens{},
			[]string{"dropped prompt ids: not a list of whole numbers from 0 to 2147483647: [1.0,2.0]", "dropped token ids: not a list of whole numbers from 0 to 2147483647: [3,4.5]"}},
		{"negative", `"prompt_token_ids":[1,2]`, `"token_ids":[3,-1],` + content, episode.Tokens{Prompt: whole.Prompt, Logprobs: whole.Logprobs},
			[]string{"dropped token ids: not a list of whole numbers from 0 to 2147483647: [3,-1]"}},
		{"over 2^31", `"prompt_token_ids":[2147483648]`, `"token_ids":[2147483647]`, episode.Tokens{Completion: episode.IDs{1<<31 - 1}},
			[]string{"dropped prompt ids: not a list of whole numbers from 0 to 2147483647: [2147483648]"}},
		{"too few logprobs", "", `"token_ids":[3,4,5],` + content, episode.Tokens{Completion: episode.IDs{3, 4, 5}}, []string{"dropped logprobs: 2 for 3 tokens"}},
		{"too many logprobs", "", `"token_ids":[3],` + content, episode.Tokens{Completion: episode.IDs{3}}, []string{"dropped logprobs: 2 for 1 tokens"}},
		{"a logprob is null", "", `"token_ids":[3,4],"logprobs":{"content":[{"token":"a","logprob":null},{"token":"b","logprob":-1}]}`,
			episode.Tokens{Completion: whole.Completion}, []string{"dropped logprobs: a token has none"}},
		{"a logprob is a text", "", `"token_ids":[3],"logprobs":{"content":[{"token":"a","logprob":"-1"}]}`,
			episode.Tokens{Completion: episode.IDs{3}}, []string{"dropped logprobs: a token has none"}},
		{"a logprob that fits no float", "", `"token_ids":[3],"logprobs":{"content":[{"token":"a","logprob":-1e300}]}`,
			episode.Tokens{Completion: episode.IDs{3}}, []string{"dropped logprobs: -1e+300 is none"}},
		{"some entries have ids", "", `"logprobs":{"content":[{"id":3,"token":"a","logprob":-0.5},{"token":"b","logprob":-1}]}`,
			episode.Tokens{Logprobs: whole.Logprobs}, nil},
		{"usage counts otherwise", `"prompt_token_ids":[1,2],"usage":{"prompt_tokens":1,"completion_tokens":3}`, `"token_ids":[3,4],` + content,
			whole, []string{"prompt ids: 2, and 1 in the usage", "token ids: 2, and 3 in the usage"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fields := tt.reply
			if fields != "" {
				fields += ","
			}
			body := fmt.Sprintf(`{%s"choices":[{"message":{"content":"ab"},"finish_reason":"stop",%s}]}`, fields, tt.choice)
			got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, body)}}), model.Request{})
			if diff := cmp.Diff(tt.want, got.Tokens); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.repairs, got.Repairs); diff != "" || got.Message.Content != "ab" {
				t.Errorf("content %q, repairs (-want +got):\n%s", got.Message.Content, diff)
			}
		})
	}
}

// TestTooManyIDs: a reply with more ids than any model has context is read without them.
func TestTooManyIDs(t *testing.T) {
	body := `{"prompt_token_ids":[` + strings.Repeat("7,", episode.MaxIDs) + `7],"choices":[{"message":{"content":"ab"},"finish_reason":"stop","token_ids":[1]}]}`
	got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, body)}}), model.Request{})
	if got.Tokens.Prompt != nil || len(got.Tokens.Completion) != 1 || len(got.Repairs) != 1 {
		t.Errorf("%d prompt ids, completion %v, repairs %v", len(got.Tokens.Prompt), got.Tokens.Completion, got.Repairs)
	}
}

// TestMissingTokensAreSaid: a server that does not tell what it was asked for is warned of, once.
func TestMissingTokensAreSaid(t *testing.T) {
	for _, tt := range []struct {
		server string
		want   int
	}{{"", 0}, {"llamacpp", 1}} {
		var log bytes.Buffer
		client := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, `{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]}`), TokenIDs: tt.server}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		reply(t, client, model.Request{})
		reply(t, client, model.Request{})
		if got := strings.Count(log.String(), "token ids that were asked for"); got != tt.want {
			t.Errorf("%q: %d warnings, want %d:\n%s", tt.server, got, tt.want, &log)
		}
	}
}

// TestTokenStreams: a part of a stream that is not what it should be costs all ids, since the others no longer say
// where they belong.
func TestTokenStreams(t *testing.T) {
	chunk := func(fields string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"a"},` + fields + `}]}` + "\n\n"
	}
	const end = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	lp := func(n string) string { return `"logprobs":{"content":[{"token":"a","logprob":` + n + `}]}` }
	tests := []struct {
		name, stream string
		want         episode.Tokens
		repairs      []string
	}{
		{"in parts", `data: {"prompt_token_ids":[1],"choices":[]}` + "\n\n" + chunk(`"token_ids":[3],`+lp("-1")) + chunk(`"token_ids":[],"logprobs":null`) + chunk(`"token_ids":[4],`+lp("-2")) + end,
			episode.Tokens{Prompt: episode.IDs{1}, Completion: episode.IDs{3, 4}, Logprobs: []float32{-1, -2}}, nil},
		{"the prompt in every part", strings.ReplaceAll(chunk(`"token_ids":[3]`)+chunk(`"token_ids":[4]`), `{"choices"`, `{"prompt_token_ids":[1,2],"choices"`) + end,
			episode.Tokens{Prompt: episode.IDs{1, 2}, Completion: episode.IDs{3, 4}}, nil},
		{"a part with floats", chunk(`"token_ids":[3]`) + chunk(`"token_ids":[4.5]`) + chunk(`"token_ids":[5]`) + end, episode.Tokens{},
			[]string{"dropped token ids: not a list of whole numbers from 0 to 2147483647: [4.5]"}},
		{"a part without logprobs", chunk(`"token_ids":[3],`+lp("-1")) + chunk(`"token_ids":[4]`) + end,
			episode.Tokens{Completion: episode.IDs{3, 4}}, []string{"dropped logprobs: 1 for 2 tokens"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, tt.stream)
			})
			got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: true}}), model.Request{})
			if diff := cmp.Diff(tt.want, got.Tokens); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.repairs, got.Repairs); diff != "" {
				t.Errorf("repairs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamedIsPlain: a server's streamed reply has everything that its plain one has, vendor fields among it.
func TestStreamedIsPlain(t *testing.T) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{
		{Content: "Zuerst ☁", Reasoning: "two\nlooks „ä“", Calls: []episode.GoldCall{{Name: "terminal", Arguments: json.RawMessage(`{"command":"ls \"ä\", <x>"}`)}}},
		{Content: "Done."},
	}}
	for _, as := range scripted.ReasoningFields() {
		url := play(t, scripted.Config{Policy: scripted.Oracle, ReasoningAs: as, WeightVersion: "step-7", Speed: 1e6}, task)
		var got [2]model.Reply
		for i, stream := range []bool{false, true} {
			client := open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: stream, TokenIDs: "auto"}, TraceHeaders: true})
			got[i] = reply(t, client, model.Request{Tools: []json.RawMessage{terminal}, Asker: model.Asker{Episode: "e", Task: "t"}})
			got[i].RequestID = "" // made of the request's bytes
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("reasoning as %s: streamed (-plain +streamed):\n%s", as, diff)
		}
		r := got[0]
		if n := len(r.Tokens.Completion); n == 0 || n != r.Usage.Completion || len(r.Tokens.Logprobs) != n || len(r.Tokens.Prompt) != r.Usage.Prompt {
			t.Errorf("reasoning as %s: %d prompt ids, %d ids, %d logprobs, usage %+v", as, len(r.Tokens.Prompt), n, len(r.Tokens.Logprobs), r.Usage)
		}
		if r.Service.WeightVersion != "step-7" || r.Service.SystemFingerprint == "" || (r.Repairs != nil) != (as == scripted.ReasoningTags) {
			t.Errorf("reasoning as %s: service %+v, repairs %v", as, r.Service, r.Repairs)
		}
		if details := string(r.Message.ReasoningDetails); as == scripted.ReasoningDetails && details != `[{"type":"reasoning.text","text":"two\nlooks „ä“","index":0}]` {
			t.Errorf("reasoning details = %s", details)
		}
	}
}

func TestService(t *testing.T) {
	cost := 0.0
	tests := []struct {
		name, reply, choice string
		want                episode.Service
	}{
		{"OpenRouter", `"provider":"Some Co","usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0}`, `"native_finish_reason":"tool_use"`,
			episode.Service{Provider: "Some Co", NativeFinishReason: "tool_use", Cost: &cost}},
		{"OpenAI", `"system_fingerprint":"fp_1","service_tier":"flex"`, `"native_finish_reason":null`, episode.Service{SystemFingerprint: "fp_1", ServiceTier: "flex"}},
		{"SGLang", `"metadata":{"weight_version":"v3"}`, `"meta_info":{"weight_version":"v3"}`, episode.Service{WeightVersion: "v3"}},
		{"a number as the version", `"metadata":null`, `"meta_info":{"weight_version":12}`, episode.Service{WeightVersion: "12"}},
		{"a cost below zero", `"usage":{"cost":-1}`, `"x":1`, episode.Service{}},
		{"a cost as a text", `"usage":{"cost":"1"}`, `"x":1`, episode.Service{}},
		{"endless words", `"provider":"` + strings.Repeat("ä", 1000) + `"`, `"x":1`, episode.Service{Provider: strings.Repeat("ä", 100)}},
	}
	for _, tt := range tests {
		body := fmt.Sprintf(`{%s,"choices":[{"message":{"content":"ab"},"finish_reason":"stop",%s}]}`, tt.reply, tt.choice)
		got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, body)}}), model.Request{})
		if diff := cmp.Diff(tt.want, got.Service); diff != "" {
			t.Errorf("%s: service (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestReasoningDetails puts the fragments of a stream together, and nothing else.
func TestReasoningDetails(t *testing.T) {
	tests := []struct {
		name  string
		parts []string
		want  string
	}{
		{"text and its signature", []string{`[{"type":"reasoning.text","text":"a","index":0}]`, `[{"type":"reasoning.text","text":"b\n","index":0}]`, `[{"type":"reasoning.text","text":null,"signature":"s==","index":0}]`},
			`[{"type":"reasoning.text","text":"ab\n","index":0,"signature":"s=="}]`},
		{"a character cut in two", []string{`[{"type":"reasoning.summary","summary":"\ud83d"}]`, `[{"type":"reasoning.summary","summary":"\ude42"}]`},
			`[{"type":"reasoning.summary","summary":"\ud83d\ude42"}]`},
		{"another index", []string{`[{"type":"reasoning.text","text":"a","index":0}]`, `[{"type":"reasoning.text","text":"b","index":1}]`},
			`[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}]`},
		{"another id", []string{`[{"type":"reasoning.text","text":"a","id":"x"}]`, `[{"type":"reasoning.text","text":"b","id":"y"}]`},
			`[{"type":"reasoning.text","text":"a","id":"x"},{"type":"reasoning.text","text":"b","id":"y"}]`},
		{"encrypted parts stay apart", []string{`[{"type":"reasoning.encrypted","data":"aa"}]`, `[{"type":"reasoning.encrypted","data":"bb"}]`},
			`[{"type":"reasoning.encrypted","data":"aa"},{"type":"reasoning.encrypted","data":"bb"}]`},
		{"entries of one part stay apart", []string{`[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}]`},
			`[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}]`},
		{"unknown fields and their order", []string{`[ {"z":{"b":1, "a":[1.50]},"type":"x","<":"&"} ]`}, `[{"z":{"b":1,"a":[1.50]},"type":"x","<":"&"}]`},
		{"no list", []string{`"x"`, `{"type":"a"}`, `[1,"a",null]`, `[]`, `null`}, ``},
		{"an empty entry", []string{`[{}]`}, `[{}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stream strings.Builder
			for _, part := range tt.parts {
				fmt.Fprintf(&stream, "data: {\"choices\":[{\"delta\":{\"reasoning_details\":%s}}]}\n\n", part)
			}
			stream.WriteString(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n")
			got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, stream.String()), Stream: true}}), model.Request{})
			if string(got.Message.ReasoningDetails) != tt.want {
				t.Errorf("details = %s, want %s", got.Message.ReasoningDetails, tt.want)
			}
		})
	}
}
