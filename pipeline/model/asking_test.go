package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// taken is an endpoint that keeps the bodies which it is sent. answer may refuse one; it gives a status and a body, and
// status 0 for a fine reply.
func taken(t *testing.T, bodies *[]string, answer func(body string) (int, string)) string {
	t.Helper()
	return endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*bodies = append(*bodies, string(body))
		if answer != nil {
			if status, text := answer(string(body)); status != 0 {
				w.WriteHeader(status)
				io.WriteString(w, text)
				return
			}
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
}

// TestAsking shows, for each setting of requests, what goes out beside the messages.
func TestAsking(t *testing.T) {
	zero, cold, warm, seed := 0.0, 0.2, 1.3, 7
	tools := []json.RawMessage{terminal, readFile}
	withTools := func(fields string) string {
		return `{` + fields + `"messages":[{"role":"user","content":"Hello"}],"tools":[` + string(terminal) + `,` + string(readFile) + `]}`
	}
	plain := func(fields string) string { return `{` + fields + `"messages":[{"role":"user","content":"Hello"}]}` }
	tests := []struct {
		name string
		cfg  model.Config
		req  model.Request
		want string
	}{
		{"nothing set", model.Config{}, model.Request{}, plain(`"model":"m","stream":false,`)},
		{"zero is sent", model.Config{Settings: model.Settings{Temperature: &zero, TopP: &zero}}, model.Request{},
			plain(`"model":"m","stream":false,"temperature":0,"top_p":0,`)},
		{"the request overrides", model.Config{Settings: model.Settings{Temperature: &warm, TopP: &zero, MaxTokens: 5, ReasoningEffort: "low"}},
			model.Request{Sampling: episode.Sampling{Model: "not looked at", Temperature: &zero, TopP: &cold, MaxTokens: 6, ReasoningEffort: "high"}},
			plain(`"max_tokens":6,"model":"m","reasoning_effort":"high","stream":false,"temperature":0,"top_p":0.2,`)},
		{"the caller's limit comes first", model.Config{Settings: model.Settings{MaxTokens: 5}}, model.Request{MaxTokens: 7, Sampling: episode.Sampling{MaxTokens: 6}},
			plain(`"max_tokens":7,"model":"m","stream":false,`)},
		{"what is not overridden stays", model.Config{Settings: model.Settings{Temperature: &warm, ReasoningEffort: "low"}}, model.Request{Sampling: episode.Sampling{TopP: &cold}},
			plain(`"model":"m","reasoning_effort":"low","stream":false,"temperature":1.3,"top_p":0.2,`)},
		{"seed", model.Config{}, model.Request{Seed: &seed}, plain(`"model":"m","seed":7,"stream":false,`)},
		{"no seed", model.Config{Settings: model.Settings{SendSeed: new(false)}}, model.Request{Seed: &seed}, plain(`"model":"m","stream":false,`)},
		{"field of the limit", model.Config{Settings: model.Settings{MaxTokens: 5, MaxTokensField: "max_completion_tokens"}}, model.Request{},
			plain(`"max_completion_tokens":5,"model":"m","stream":false,`)},
		{"extra fields", model.Config{Settings: model.Settings{ExtraBody: map[string]any{"min_p": 0.05, "top_k": 20, "chat_template_kwargs": map[string]any{"enable_thinking": false}}}}, model.Request{},
			plain(`"chat_template_kwargs":{"enable_thinking":false},"min_p":0.05,"model":"m","stream":false,"top_k":20,`)},
		{"null takes a field out", model.Config{Settings: model.Settings{Temperature: &warm, MaxTokens: 5, ReasoningEffort: "low", ExtraBody: map[string]any{"temperature": nil, "max_tokens": nil, "reasoning_effort": nil, "stream": nil}}}, model.Request{}, ""},
		{"an extra limit stands alone", model.Config{Settings: model.Settings{ExtraBody: map[string]any{"max_completion_tokens": 9}}},
			model.Request{MaxTokens: 1, Sampling: episode.Sampling{MaxTokens: 9}}, plain(`"max_completion_tokens":9,"model":"m","stream":false,`)},
		{"routing", model.Config{Settings: model.Settings{Provider: map[string]any{"order": []any{"a", "b"}, "allow_fallbacks": false, "sort": "price"}}}, model.Request{},
			plain(`"model":"m","provider":{"allow_fallbacks":false,"order":["a","b"],"sort":"price"},"stream":false,`)},
		{"choice without tools", model.Config{Settings: model.Settings{ToolChoice: "required", ParallelToolCalls: new(false)}}, model.Request{},
			plain(`"model":"m","stream":false,`)},
		{"one call at a time", model.Config{Settings: model.Settings{ParallelToolCalls: new(false)}}, model.Request{Tools: tools},
			withTools(`"model":"m","parallel_tool_calls":false,"stream":false,`)},
		{"none", model.Config{Settings: model.Settings{ToolChoice: "none"}}, model.Request{Tools: tools}, withTools(`"model":"m","stream":false,"tool_choice":"none",`)},
		{"required at first", model.Config{Settings: model.Settings{ToolChoice: "required_first"}}, model.Request{Tools: tools},
			withTools(`"model":"m","stream":false,"tool_choice":"required",`)},
		{"required at first, later", model.Config{Settings: model.Settings{ToolChoice: "required_first"}}, model.Request{Tools: tools, State: model.State{Turn: 1}},
			withTools(`"model":"m","stream":false,`)},
		{"a tool", model.Config{Settings: model.Settings{ToolChoice: "read_file"}}, model.Request{Tools: tools},
			withTools(`"model":"m","stream":false,"tool_choice":{"function":{"name":"read_file"},"type":"function"},`)},
		{"a tool that is not offered", model.Config{Settings: model.Settings{ToolChoice: "web_search"}}, model.Request{Tools: tools},
			withTools(`"model":"m","stream":false,`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			tt.cfg.BaseURL = taken(t, &bodies, nil)
			if tt.want == "" {
				delete(tt.cfg.ExtraBody, "stream") // is the client's own
				tt.want = plain(`"model":"m","stream":false,`)
			}
			reply(t, open(t, tt.cfg), tt.req)
			if diff := cmp.Diff([]string{tt.want}, bodies); diff != "" {
				t.Errorf("request bodies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskingRefused(t *testing.T) {
	hot := 0.5
	tests := []struct {
		name string
		give model.Config
		want string
	}{
		{"field of the limit", model.Config{Settings: model.Settings{MaxTokensField: "max_output_tokens"}}, `max_tokens_field "max_output_tokens" (want auto, max_tokens, max_completion_tokens)`},
		{"reasoning", model.Config{Settings: model.Settings{SendReasoning: "yes"}}, `send_reasoning "yes" (want auto, true, false)`},
		{"choice", model.Config{Settings: model.Settings{ToolChoice: "read file"}}, `tool_choice "read file"`},
		{"effort", model.Config{Settings: model.Settings{ReasoningEffort: "low\n"}}, "reasoning_effort"},
		{"twice", model.Config{Settings: model.Settings{Temperature: &hot, ExtraBody: map[string]any{"temperature": 1}}}, "temperature is given by itself and as an extra body field"},
		{"limit twice", model.Config{Settings: model.Settings{MaxTokens: 5, ExtraBody: map[string]any{"max_completion_tokens": 6}}}, "max_completion_tokens is given by itself"},
		{"routing", model.Config{Settings: model.Settings{Provider: map[string]any{"sort": make(chan int)}}}, "provider: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.Name, tt.give.BaseURL = "m", "http://localhost/v1"
			if err := tt.give.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// TestLimitFieldIsLearnt holds that a server which refuses the name of the limit is asked with the other one, from then
// on and once.
func TestLimitFieldIsLearnt(t *testing.T) {
	const openAI = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
	const strict = `{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}`
	const both = `{"error":{"message":"Unrecognized request arguments supplied: max_tokens, max_completion_tokens"}}`
	const value = `{"error":{"message":"max_tokens is too large: 5. This model supports at most 4 completion tokens, whereas you provided 5."}}`
	refuse := func(field, body string) func(string) (int, string) {
		return func(sent string) (int, string) {
			if strings.Contains(sent, `"`+field+`":`) {
				return 400, body
			}
			return 0, ""
		}
	}
	tests := []struct {
		name   string
		field  string // of the config
		answer func(string) (int, string)
		want   []string // the field of each request of two calls
		class  string   // of the error; empty for a reply
	}{
		{"max_tokens refused", "", refuse("max_tokens", openAI), []string{"max_tokens", "max_completion_tokens", "max_completion_tokens"}, ""},
		{"told which", "max_tokens", refuse("max_tokens", openAI), []string{"max_tokens", "max_tokens"}, model.ClassBadRequest},
		{"neither is known", "", func(string) (int, string) { return 400, both }, []string{"max_tokens", "max_completion_tokens", "max_completion_tokens"}, model.ClassBadRequest},
		{"each refused in turn", "", func(sent string) (int, string) {
			if strings.Contains(sent, `"max_tokens":`) {
				return 400, openAI
			}
			return 422, strict
		}, []string{"max_tokens", "max_completion_tokens", "max_completion_tokens"}, model.ClassBadRequest},
		{"the value refused", "", refuse("max_tokens", value), []string{"max_tokens", "max_tokens"}, model.ClassBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			client := open(t, model.Config{Settings: model.Settings{BaseURL: taken(t, &bodies, tt.answer), MaxTokens: 5, MaxTokensField: tt.field}})
			for n := range 2 {
				got, err := client.Complete(t.Context(), model.Request{Messages: hello})
				switch {
				case tt.class != "" && (err == nil || asError(t, err).Class != tt.class):
					t.Errorf("call %d: error %v, want class %s", n, err, tt.class)
				case tt.class == "" && err != nil:
					t.Errorf("call %d: %v", n, err)
				case tt.class == "" && n == 0 && (len(got.Retries) != 1 || got.Retries[0].Class != model.ClassLimitField):
					t.Errorf("retries of the first call: %+v, want one of class %s", got.Retries, model.ClassLimitField)
				}
			}
			var fields []string
			for _, body := range bodies {
				for _, field := range []string{"max_tokens", "max_completion_tokens"} {
					if strings.Contains(body, `"`+field+`":5`) {
						fields = append(fields, field)
					}
				}
			}
			if diff := cmp.Diff(tt.want, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeedIsLearnt holds that a server which refuses a seed is asked without one, from then on and once, and that a tape of it
// plays.
func TestSeedIsLearnt(t *testing.T) {
	const value = `{"error":{"message":"seed is out of range: 7. This model supports at most 4."}}`
	seed := 7
	tests := []struct {
		name   string
		status int
		body   string
		want   []bool // whether each request of two calls has a seed
		class  string // of the error; empty for a reply
	}{
		{"mistral on azure", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":7}]}`, []bool{true, false, false}, ""},
		{"gemini", 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"seed\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`, []bool{true, false, false}, ""},
		{"litellm", 400, `{"error":{"message":"litellm.UnsupportedParamsError: anthropic does not support parameters: ['seed'], for model=claude. To drop these, set ` + "`litellm.drop_params=True`" + `","type":"None","param":null,"code":"400"}}`, []bool{true, false, false}, ""},
		{"litellm with 500", 500, `{"error":{"message":"ollama does not support parameters: {'seed': 7}, for model=llama3. To drop these, set drop_params","code":500}}`, []bool{true, false, false}, ""},
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"Argument not supported on this model: seed"}`, []bool{true, false, false}, ""},
		{"llamaedge", 400, "unknown field `seed`", []bool{true, false, false}, ""},
		{"the value refused", 400, value, []bool{true, true}, model.ClassBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			path := filepath.Join(t.TempDir(), "tape")
			r := recorder(t, path)
			cfg := model.Config{Settings: model.Settings{Name: "m", BaseURL: taken(t, &bodies, func(sent string) (int, string) {
				if strings.Contains(sent, `"seed":7`) {
					return tt.status, tt.body
				}
				return 0, ""
			})}, Record: r}
			client := open(t, cfg)
			var recorded []outcome
			req := model.Request{Messages: hello, Seed: &seed}
			for n := range 2 {
				got := ask(t, t.Context(), client, of(fmt.Sprint(n), req))
				switch {
				case tt.class != "" && (got.Err == nil || got.Err.Class != tt.class), tt.class == "" && got.Err != nil:
					t.Errorf("call %d: error %v, want class %q", n, got.Err, tt.class)
				case tt.class == "" && n == 0 && (len(got.Reply.Retries) != 1 || got.Reply.Retries[0].Class != model.ClassSeedField):
					t.Errorf("retries of the first call: %+v, want one of class %s", got.Reply.Retries, model.ClassSeedField)
				}
				recorded = append(recorded, got)
			}
			var seeds []bool
			for _, body := range bodies {
				seeds = append(seeds, strings.Contains(body, `"seed":`))
			}
			if diff := cmp.Diff(tt.want, seeds); diff != "" {
				t.Errorf("seeds (-want +got):\n%s", diff)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			cfg.Record, cfg.Replay = nil, player(t, path)
			client = open(t, cfg)
			for n := range slices.Backward(recorded) { // what was learnt first is played last
				sameOutcome(t, recorded[n], ask(t, t.Context(), client, of(fmt.Sprint(n), req)))
			}
		})
	}
}

// TestReasoningGoesBack shows what a server gets of the thinking of earlier turns.
func TestReasoningGoesBack(t *testing.T) {
	details := `[{"type":"reasoning.encrypted","data":"b+/<&>==","id":"r1","index":0,"n":1.50},{"type":"reasoning.text","text":"a\u2028b","signature":null}]`
	thought := []episode.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b", Reasoning: "hm", ReasoningDetails: json.RawMessage(details)}, {Role: "user", Content: "c"}}
	bare := []episode.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b", Reasoning: "hm"}, {Role: "user", Content: "c"}}
	const other, router = "http://localhost:1/v1", "http://openrouter.ai/api/v1"
	tests := []struct {
		name     string
		base     string
		mode     string
		messages []episode.Message
		want     string // between the content and the end of the assistant's message
	}{
		{"others get nothing", other, "", thought, ``},
		{"OpenRouter gets its details", router, "auto", thought, `,"reasoning_details":` + details},
		{"OpenRouter gave none", router, "auto", bare, ``},
		{"OpenRouter, never", router, "false", thought, ``},
		{"always, details", other, "true", thought, `,"reasoning_details":` + details},
		{"always, text", other, "true", bare, `,"reasoning_content":"hm"`},
		{"always, text for OpenRouter", router, "true", bare, `,"reasoning":"hm"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bodies []string
			here, err := url.Parse(taken(t, &bodies, nil))
			if err != nil {
				t.Fatal(err)
			}
			client := open(t, model.Config{Settings: model.Settings{BaseURL: tt.base, SendReasoning: tt.mode}, Proxy: func(*http.Request) (*url.URL, error) { return here, nil }})
			reply(t, client, model.Request{Messages: tt.messages})
			want := `{"model":"m","stream":false,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"` + tt.want + `},{"role":"user","content":"c"}]}`
			if diff := cmp.Diff([]string{want}, bodies); diff != "" {
				t.Errorf("request bodies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReasoningComesAndGoesBack holds that what a server gave goes back as it came, beside calls and with odd members.
func TestReasoningComesAndGoesBack(t *testing.T) {
	details := `[{"type":"reasoning.encrypted","data":"<&>==","id":null,"index":0,"n":1.50,"more":{"b":1,"a":2}}]`
	var bodies []string
	url := taken(t, &bodies, func(string) (int, string) {
		return 200, `{"choices":[{"message":{"content":null,"reasoning":"hm","reasoning_details":` + details + `,"tool_calls":[{"id":"c","type":"function","function":{"name":"terminal","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	})
	client := open(t, model.Config{Settings: model.Settings{BaseURL: url, SendReasoning: "true"}})
	first := reply(t, client, model.Request{})
	reply(t, client, model.Request{Messages: append(hello[:1:1], first.Message)})
	want := `{"model":"m","stream":false,"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":null,"reasoning_details":` + details +
		`,"tool_calls":[{"id":"c","type":"function","function":{"name":"terminal","arguments":"{}"}}]}]}`
	if diff := cmp.Diff(want, bodies[1]); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

// TestByName holds that each request goes to the model that it names.
func TestByName(t *testing.T) {
	var one, two []string
	models := model.ByName{
		"a": open(t, model.Config{Settings: model.Settings{Name: "a", BaseURL: taken(t, &one, nil)}}),
		"b": open(t, model.Config{Settings: model.Settings{Name: "b", BaseURL: taken(t, &two, nil)}}),
	}
	for _, name := range []string{"a", "b", "a"} {
		if _, err := models.Complete(t.Context(), model.Request{Messages: hello, Sampling: episode.Sampling{Model: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(one) != 2 || len(two) != 1 || !strings.Contains(two[0], `"model":"b"`) {
		t.Errorf("requests %q and %q", one, two)
	}
	_, err := models.Complete(t.Context(), model.Request{Messages: hello})
	if e := asError(t, err); !e.Fatal || !strings.Contains(e.Message, `names model "" (have a, b)`) {
		t.Errorf("error %v", err)
	}
	if models.Paused() {
		t.Error("models that answer are paused")
	}
}
