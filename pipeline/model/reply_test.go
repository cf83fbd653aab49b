package model_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// TestReplies reads what servers in the wild send, in one piece.
func TestReplies(t *testing.T) {
	call := func(id, name, args string) episode.Call { return episode.Call{ID: id, Name: name, Arguments: args} }
	tests := []struct {
		name, message string
		want          episode.Message
	}{
		{"content as parts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, episode.Message{Content: "ab"}},
		{"a part that is not a text", `{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},{}]}`, episode.Message{Content: "a"}},
		{"a refusal with a think block", `{"refusal":"<think>hm</think>no"}`, episode.Message{Content: "no", Reasoning: "hm"}},
		{"thinking as a part", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"b"}]}`,
			episode.Message{Content: "b", Reasoning: "hm"}},
		{"reasoning twice", `{"content":"x","reasoning":"hm","reasoning_content":"hm"}`, episode.Message{Content: "x", Reasoning: "hm"}},
		{"reasoning details", `{"content":"x","reasoning_details":[{"type":"reasoning.text","text":"h"},{"type":"reasoning.encrypted","data":"zz"},{"summary":"m"}]}`,
			episode.Message{Content: "x", Reasoning: "hm", ReasoningDetails: json.RawMessage(`[{"type":"reasoning.text","text":"h"},{"type":"reasoning.encrypted","data":"zz"},{"summary":"m"}]`)}},
		{"think block", `{"content":"\n<think>\nhm <b>\n</think>\n\nx </think>"}`, episode.Message{Content: "x </think>", Reasoning: "hm <b>"}},
		{"think block that never ends", `{"content":"<think>hm"}`, episode.Message{Reasoning: "hm"}},
		{"empty think block", `{"content":"<think>\n\n</think>\n\nx","reasoning":"hm"}`, episode.Message{Content: "x", Reasoning: "hm"}},
		{"think block and field", `{"content":"<think>b</think>x","reasoning":"a"}`, episode.Message{Content: "x", Reasoning: "a\n\nb"}},
		{"think block in the middle is content", `{"content":"use <think>x</think>"}`, episode.Message{Content: "use <think>x</think>"}},
		{"refusal", `{"content":null,"refusal":"no"}`, episode.Message{Content: "no"}},
		{"refusal beside a content", `{"content":"x","refusal":"no"}`, episode.Message{Content: "x"}},
		{"two reasonings", `{"content":"x","reasoning":"other","reasoning_content":"hm"}`, episode.Message{Content: "x", Reasoning: "hm"}},
		{"a closing tag that is mentioned", `{"content":"The tag </think> ends it."}`, episode.Message{Content: "The tag </think> ends it."}},
		{"half of a surrogate pair", `{"content":"a\ud83d \ufffd"}`, episode.Message{Content: "a\uFFFD \uFFFD"}},
		{"bytes that are not UTF-8", "{\"content\":\"a\xff\"}", episode.Message{Content: "a\uFFFD"}},
		{"half of one behind a think block", `{"content":"<think>a</think>b\ud83d"}`, episode.Message{Content: "b\uFFFD", Reasoning: "a"}},
		{"half of one in arguments", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":\"\udc00\"}"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", "{\"a\":\"\uFFFD\"}")}}},
		{"replacement characters of the model's own", `{"content":"\uFFFD\ufffd�"}`, episode.Message{Content: "\uFFFD\uFFFD\uFFFD"}},
		{"nothing", `{"content":null}`, episode.Message{}},
		{"arguments as object", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"b": 1, "a":[ ]}}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", `{"b": 1, "a":[ ]}`)}}},
		{"arguments null or missing", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":null}},{"id":"b","function":{"name":"g"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", ""), call("b", "g", "")}}},
		{"broken arguments stay", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{'x': 1,\n"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", "{'x': 1,\n")}}},
		{"no ids", `{"tool_calls":[{"function":{"name":"f","arguments":"1"}},{"function":{"name":"f","arguments":"2"}}]}`,
			episode.Message{Calls: []episode.Call{call("call_1_0", "f", "1"), call("call_1_1", "f", "2")}}},
		{"one id twice", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}},{"index":1,"id":"a","function":{"name":"f","arguments":"2"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", "1"), call("a_2", "f", "2")}}},
		{"no calls as an object", `{"content":"x","tool_calls":{}}`, episode.Message{Content: "x"}},
		{"calls that are null, or nothing", `{"content":"x","tool_calls":[null,{}]}`, episode.Message{Content: "x"}},
		{"indexes as texts and floats", `{"tool_calls":[{"index":"1","id":"b","function":{"name":"g","arguments":"{}"}},{"index":0.0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", "{}"), call("b", "g", "{}")}}},
		{"same id twice without index", `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"a","function":{"name":"g","arguments":"2"}}]}`,
			episode.Message{Calls: []episode.Call{call("a", "f", "1"), call("a_2", "g", "2")}}},
	}
	type change struct {
		repairs []string
		raw     string
	}
	const thinking = "thinking in the content"
	changes := map[string]change{ // of the others nothing is to be said
		"think block":                      {[]string{thinking}, `{"content":"\n<think>\nhm <b>\n</think>\n\nx </think>"}`},
		"think block that never ends":      {[]string{"unclosed thinking in the content"}, `{"content":"<think>hm"}`},
		"empty think block":                {[]string{thinking}, `{"content":"<think>\n\n</think>\n\nx"}`},
		"think block and field":            {[]string{thinking}, `{"content":"<think>b</think>x"}`},
		"a part that is not a text":        {[]string{"left out a part of the content: image_url", "left out a part of the content: without a type"}, ""},
		"a refusal with a think block":     {[]string{"refusal", thinking}, `{"refusal":"<think>hm</think>no"}`},
		"two reasonings":                   {[]string{"another reasoning"}, `{"reasoning":"other"}`},
		"refusal":                          {[]string{"refusal"}, ""},
		"refusal beside a content":         {[]string{"refusal beside the content"}, `{"refusal":"no"}`},
		"one id twice":                     {[]string{"renamed call: a"}, ""},
		"same id twice without index":      {[]string{"renamed call: a"}, ""},
		"half of a surrogate pair":         {[]string{"invalid characters: content"}, `{"content":"a\ud83d \ufffd"}`},
		"bytes that are not UTF-8":         {[]string{"invalid characters: content"}, "{\"content\":\"a\uFFFD\"}"},
		"half of one in arguments":         {[]string{"invalid characters: f"}, `{"tool_calls":[{"arguments":"{\"a\":\"\udc00\"}","name":"f"}]}`},
		"half of one behind a think block": {[]string{"invalid characters: content", thinking}, `{"content":"<think>a</think>b\ud83d"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Role = "assistant"
			changed := changes[tt.name]
			body := fmt.Sprintf("\n  {\"id\":7,\"model\":null,\"usage\":null,\"choices\":[{\"message\":%s,\"finish_reason\":\"stop\"}],\"new\":{}}\n", tt.message)
			for _, stream := range []bool{false, true} { // a server may ignore that a stream was asked for
				got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, body), Stream: stream}}), model.Request{})
				if diff := cmp.Diff(model.Reply{Message: tt.want, FinishReason: "stop", RequestID: "7", Repairs: changed.repairs, Raw: changed.raw}, got); diff != "" {
					t.Errorf("stream %v: reply (-want +got):\n%s", stream, diff)
				}
			}
		})
	}
}

// TestStreams reads what servers in the wild send, in pieces. The delta of each line is in the first choice.
func TestStreams(t *testing.T) {
	const end = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	delta := func(s string) string { return `data: {"choices":[{"index":0,"delta":` + s + `}]}` + "\n\n" }
	fragment := func(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
	tests := []struct {
		name, stream string
		want         episode.Message
		class        string // of the error, if any
	}{
		{"plain", delta(`{"content":"a"}`) + delta(`{"content":"b"}`) + end + "data: [DONE]\n\n", episode.Message{Content: "ab"}, ""},
		{"no terminator", delta(`{"content":"a"}`) + end, episode.Message{Content: "a"}, ""},
		{"last line without its end", delta(`{"content":"a"}`) + strings.TrimSpace(end), episode.Message{Content: "a"}, ""},
		{"carriage returns, comments, no space, no blank lines", ": ping\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\nevent: x\r\nid: 3\r\n" + end,
			episode.Message{Content: "a"}, ""},
		{"event over several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\n" + end, episode.Message{Content: "a"}, ""},
		{"a thousand pings", strings.Repeat(": ping\n\n", 1000) + delta(`{"content":"a"}`) + end, episode.Message{Content: "a"}, ""},
		{"cut between events", delta(`{"content":"a"}`), episode.Message{}, model.ClassConnection},
		{"terminator without finish reason", delta(`{"content":"a"}`) + "data: [DONE]\n\n", episode.Message{Content: "a"}, ""},
		{"terminator behind a call", fragment(`{"id":"a","function":{"name":"f","arguments":"{}"}}`) + "data: [DONE]\n\n",
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "f", Arguments: "{}"}}}, ""},
		{"terminator within a call", fragment(`{"id":"a","function":{"name":"f","arguments":"{\"a\":"}}`) + "data: [DONE]\n\n", episode.Message{}, model.ClassConnection},
		{"terminator behind nothing", delta(`{"role":"assistant"}`) + "data: [DONE]\n\n", episode.Message{}, model.ClassConnection},
		{"cut within a line", delta(`{"content":"a"}`) + `data: {"choices":[{"delta":{"con`, episode.Message{}, model.ClassConnection},
		{"empty", "", episode.Message{}, model.ClassConnection},
		{"not JSON", delta(`{"content":"a"}`) + "data: {oops}\n\n" + end, episode.Message{}, model.ClassMalformed},
		{"a page", "<html></html>", episode.Message{}, model.ClassMalformed},
		{"error with a space", delta(`{"content":"a"}`) + `data: { "error": {"message":"busy","code":429}}` + "\n\n", episode.Message{}, model.ClassRateLimit},
		{"error of old vLLM", `data: {"object":"error","message":"This model's maximum context length is 9","code":40303}` + "\n\n", episode.Message{}, model.ClassContextOverflow},
		{"error after pings", ": ping\n\n" + `data: {"error":{"message":"worker died"}}` + "\n\n", episode.Message{}, model.ClassServer},
		{"error event", "event: error\ndata: {\"message\":\"overloaded\"}\n\n", episode.Message{}, model.ClassOverloaded},
		{"error in the choice", `data: {"choices":[{"delta":{"content":""},"error":{"code":502,"message":"x"},"finish_reason":"error"}]}` + "\n\n", episode.Message{}, model.ClassServer},
		{"finish reason error", `data: {"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n\n", episode.Message{}, model.ClassServer},
		{"filtered", delta(`{"content":"a"}`) + `data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n\n", episode.Message{}, model.ClassContentPolicy},
		{"calls interleaved and out of order", fragment(`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`) +
			fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"["}}`) + fragment(`{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"]"}}`) + end,
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "f", Arguments: "[]"}, {ID: "b", Name: "g", Arguments: "{}"}}}, ""},
		{"calls without index", fragment(`{"id":"a","function":{"name":"f","arguments":""}}`) + fragment(`{"function":{"arguments":"{}"}}`) +
			fragment(`{"id":"b","function":{"name":"f","arguments":"[]"}}`) + end,
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "[]"}}}, ""},
		{"calls all numbered 0", fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + fragment(`{"index":0,"id":"b","function":{"name":"f","arguments":"[]"}}`) + end,
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "[]"}}}, ""},
		{"name said again", fragment(`{"index":0,"id":"a","function":{"name":"f_g","arguments":"{"}}`) + fragment(`{"index":0,"id":"a","function":{"name":"f_g","arguments":"}"}}`) + end,
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "f_g", Arguments: "{}"}}}, ""},
		{"name in pieces", fragment(`{"index":0,"id":"a","function":{"name":"read_"}}`) + fragment(`{"index":0,"function":{"name":"file","arguments":"{}"}}`) + end,
			episode.Message{Calls: []episode.Call{{ID: "a", Name: "read_file", Arguments: "{}"}}}, ""},
		{"think block across events", delta(`{"content":"<thi"}`) + delta(`{"content":"nk>hm</th"}`) + delta(`{"content":"ink>\n\nx"}`) + end,
			episode.Message{Content: "x", Reasoning: "hm"}, ""},
		{"another choice without an index", `data: {"choices":[{"delta":{"content":"a"}},{"delta":{"content":"z"}}]}` + "\n\n" + end, episode.Message{Content: "a"}, ""},
		{"indexes as texts", `data: {"choices":[{"index":"1","delta":{"content":"z"}},{"index":"0","delta":{"content":"a","tool_calls":{}}}]}` + "\n\n" +
			fragment(`{"index":"0","id":"a","function":{"name":"f","arguments":"["}}`) + fragment(`{"index":1.0,"id":"b","function":{"name":"g","arguments":"{"}}`) +
			fragment(`{"index":"0","function":{"arguments":"]"}},{"index":1.0,"function":{"arguments":"}"}}`) + end,
			episode.Message{Content: "a", Calls: []episode.Call{{ID: "a", Name: "f", Arguments: "[]"}, {ID: "b", Name: "g", Arguments: "{}"}}}, ""},
		{"a byte-order mark", "\ufeff" + delta(`{"content":"a"}`) + end, episode.Message{Content: "a"}, ""},
		{"bare carriage returns", strings.ReplaceAll(": ping\n\n"+delta(`{"content":"a"}`)+delta(`{"content":"b"}`)+end+"data: [DONE]\n\n", "\n", "\r"), episode.Message{Content: "ab"}, ""},
		{"a surrogate pair over two events", delta(`{"content":"a\ud83d"}`) + fragment(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\"\ud83d"}}`) +
			delta(`{"content":"\ude00b"}`) + fragment(`{"index":0,"function":{"arguments":"\ude00\"}"}}`) + end,
			episode.Message{Content: "a😀b", Calls: []episode.Call{{ID: "a", Name: "f", Arguments: `{"a":"😀"}`}}}, ""},
		{"another choice", `data: {"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":"stop"}]}` + "\n\n" + delta(`{"content":"a"}`) + end, episode.Message{Content: "a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, tt.stream), Stream: true}}).Complete(t.Context(), model.Request{Messages: hello})
			if tt.class != "" {
				if e := asError(t, err); e.Class != tt.class {
					t.Errorf("error = %v, want class %s", e, tt.class)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Role = "assistant"
			if diff := cmp.Diff(tt.want, got.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamedExtras holds that what stands beside a streamed content is kept as that of a whole reply is.
func TestStreamedExtras(t *testing.T) {
	const stream = `data: {"id":7,"choices":[{"delta":{"content":"x"}}]}` + "\n\n" + `data: {"id":7,"choices":[{"delta":{"refusal":"n"}}]}` + "\n\n" +
		`data: {"id":7,"choices":[{"delta":{"refusal":"o"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: says(t, 200, stream), Stream: true}}), model.Request{})
	want := model.Reply{
		Message: episode.Message{Role: "assistant", Content: "x"}, FinishReason: "stop", RequestID: "7",
		Repairs: []string{"refusal beside the content"}, Raw: `{"refusal":"no"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

// TestForms reads replies that come otherwise than they were asked for, and in pieces of a byte.
func TestForms(t *testing.T) {
	const events = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	const whole = `{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]}`
	tests := []struct {
		name, body string
		stream     bool // was asked for
	}{
		{"a stream to a plain request", events, false},
		{"a stream that begins with a comment to a plain request", "\ufeff: ping\n\n" + events, false},
		{"a byte-order mark before a plain reply", "\ufeff" + whole, false},
		{"a byte-order mark before a plain reply to a stream", "\ufeff" + whole, true},
		{"bare carriage returns", strings.ReplaceAll(events, "\n", "\r"), true},
		{"another choice without an index", strings.Replace(whole, "}]}", "},{\"message\":{\"content\":\"z\"}}]}", 1), false},
		{"another choice of the same index", strings.NewReplacer(`{"message"`, `{"index":0,"message"`, "}]}", `},{"index":0,"message":{"content":"z"},"finish_reason":"length"}]}`).Replace(whole), false},
		{"carriage returns and line feeds", strings.ReplaceAll(events, "\n", "\r\n"), true},
	}
	for _, tt := range tests {
		for _, compressed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, compressed %v", tt.name, compressed), func(t *testing.T) {
				url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
					var out io.Writer = w
					if compressed {
						w.Header().Set("Content-Encoding", "gzip")
						zipped := gzip.NewWriter(w)
						defer zipped.Close()
						out = zipped
					}
					for i := range len(tt.body) {
						io.WriteString(out, tt.body[i:i+1])
						w.(http.Flusher).Flush()
					}
				})
				got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: tt.stream}}), model.Request{})
				if diff := cmp.Diff(episode.Message{Role: "assistant", Content: "ab"}, got.Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestEndOfLines: the terminator ends a stream also where a server that writes bare carriage returns keeps it open.
func TestEndOfLines(t *testing.T) {
	release := make(chan struct{})
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\r\rdata: [DONE]\r\r")
		w.(http.Flusher).Flush()
		<-release
	})
	defer close(release)
	if got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: true}}), model.Request{}); got.Message.Content != "a" {
		t.Errorf("content = %q", got.Message.Content)
	}
}

// TestEncodings: a server that compresses what nobody asked it to is read, or named.
func TestEncodings(t *testing.T) {
	for _, tt := range []struct{ encoding, body, class, message string }{
		{"br", "\x8b\x03\x80", model.ClassMalformed, `compressed as "br"`},
		{"gzip", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, "", ""}, // which it is not
		{"identity", `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, "", ""},
	} {
		for _, stream := range []bool{false, true} {
			url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", tt.encoding)
				io.WriteString(w, tt.body)
			})
			_, err := open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: stream}}).Complete(t.Context(), model.Request{Messages: hello})
			if tt.class == "" {
				if err != nil {
					t.Errorf("%s, stream %v: %v", tt.encoding, stream, err)
				}
				continue
			}
			if e := asError(t, err); e.Class != tt.class || !strings.Contains(e.Message, tt.message) {
				t.Errorf("%s, stream %v: error = %v, want class %s and %q", tt.encoding, stream, e, tt.class, tt.message)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name, give string
		want       episode.Usage
	}{
		{"none", `null`, episode.Usage{}},
		{"empty", `{}`, episode.Usage{}},
		{"OpenAI", `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`,
			episode.Usage{Prompt: 9, Completion: 5, Cached: 4, Reasoning: 3, Reported: true}},
		{"DeepSeek", `{"prompt_tokens":9,"completion_tokens":5,"prompt_cache_hit_tokens":4}`, episode.Usage{Prompt: 9, Completion: 5, Cached: 4, Reported: true}},
		{"null details, floats", `{"prompt_tokens":9.0,"completion_tokens":1,"prompt_tokens_details":null}`, episode.Usage{Prompt: 9, Completion: 1, Reported: true}},
		{"huge, with negative details", `{"prompt_tokens":1,"completion_tokens":1e300,"prompt_cache_hit_tokens":-4}`, episode.Usage{Prompt: 1, Completion: 1 << 40, Reported: true}},
		{"negative", `{"prompt_tokens":-1,"completion_tokens":5}`, episode.Usage{}},
		{"no prompt", `{"prompt_tokens":0,"completion_tokens":5}`, episode.Usage{}},
		{"no completion", `{"prompt_tokens":9,"completion_tokens":0}`, episode.Usage{}},
		{"all zero", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, episode.Usage{}},
		{"texts", `{"prompt_tokens":"9","completion_tokens":"5"}`, episode.Usage{}},
		{"a text", `{"prompt_tokens":9,"completion_tokens":"5"}`, episode.Usage{}},
		{"odd details", `{"prompt_tokens":1,"prompt_tokens_details":"?","completion_tokens":2}`, episode.Usage{Prompt: 1, Completion: 2, Reported: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := says(t, 200, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":`+tt.give+`}`)
			if got := reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url}}), model.Request{}).Usage; got != tt.want {
				t.Errorf("usage = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestErrorBodies classifies what servers in the wild refuse with.
func TestErrorBodies(t *testing.T) {
	tests := []struct {
		status  int
		body    string
		class   string
		message string
	}{
		{400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, model.ClassContextOverflow, "too long"},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}`, model.ClassContextOverflow, "4096"},
		{400, `{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, model.ClassContextOverflow, "exceeds"},
		{400, `{"error":{"message":"filtered","code":"content_filter"}}`, model.ClassContentPolicy, "filtered"},
		{403, `{"error":{"message":"Your input was flagged","code":403}}`, model.ClassContentPolicy, "flagged"},
		{400, `{"error":"model 'x' not found"}`, model.ClassModelNotFound, "model 'x' not found"},
		{400, `{"error":{"message":"tool 'x' not found"}}`, model.ClassBadRequest, "tool 'x' not found"},
		{429, `[{"error":{"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}]`, model.ClassRateLimit, "exceeded"},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, model.ClassQuota, "exceeded"},
		{422, `{"detail":[{"loc":["body","x"],"msg":"field required"}]}`, model.ClassBadRequest, "field required"},
		{500, `maximum context length`, model.ClassServer, "not JSON"},
		{503, ``, model.ClassOverloaded, "Service Unavailable"},
		{200, `{"error":{"message":"Provider returned error","code":503}}`, model.ClassOverloaded, "Provider"},
		{200, `{"error":"out of memory"}`, model.ClassServer, "out of memory"},
		{200, ``, model.ClassMalformed, "not a chat completion"},
		{200, `{"choices":[]}`, model.ClassMalformed, "no message"},
		{200, `{"choices":[{"message":null,"finish_reason":"stop"}]}`, model.ClassMalformed, "no message"},
		{200, `{"choices":[{"message":{"tool_calls":"none"}}]}`, model.ClassMalformed, "not a chat completion"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d %.30s", tt.status, tt.body), func(t *testing.T) {
			_, err := open(t, model.Config{Settings: model.Settings{BaseURL: says(t, tt.status, tt.body)}}).Complete(t.Context(), model.Request{Messages: hello})
			e := asError(t, err)
			if e.Class != tt.class || e.Status != tt.status || !strings.Contains(e.Message, tt.message) {
				t.Errorf("error = %v, want class %s, status %d and %q", e, tt.class, tt.status, tt.message)
			}
		})
	}
}

// FuzzReply feeds raw bytes as a reply, streamed and not: no panic, no half message, and calls that can be answered.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"choices":[{"message":{"content":"x","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}}]}`,
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"function\":{\"name\":\"f\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		": ping\n\ndata: { \"error\": []}\n\n", `{"choices":[{"message":{"content":[{"thinking":[[[]]]}]}}],"usage":[]}`, "<html>",
		`{"choices":[{"delta":{"content":"<think>"},"message":{}}]}`, "data: {\ndata: }\n\n", "event: error\ndata: 1\n\n",
	} {
		f.Add([]byte(seed))
	}
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(body)
	}))
	f.Cleanup(server.Close)
	clients := []*model.Client{open(f, model.Config{Settings: model.Settings{BaseURL: server.URL}}), open(f, model.Config{Settings: model.Settings{BaseURL: server.URL, Stream: true}})}
	f.Fuzz(func(t *testing.T, data []byte) {
		body = data
		for _, client := range clients {
			got, err := client.Complete(t.Context(), model.Request{Messages: hello})
			if err != nil {
				if e := asError(t, err); e.Class == "" || e.Message == "" || strings.Contains(e.Message, "\n") {
					t.Errorf("error = %+v, want a class and one line", e)
				}
				continue
			}
			if got.Raw != "" && (!json.Valid([]byte(got.Raw)) || !utf8.ValidString(got.Raw) || len(got.Repairs) == 0) {
				t.Errorf("raw = %q with repairs %q", got.Raw, got.Repairs)
			}
			ids := map[string]bool{}
			for _, call := range got.Message.Calls {
				if call.ID == "" || ids[call.ID] {
					t.Errorf("calls = %+v, want distinct ids", got.Message.Calls)
				}
				ids[call.ID] = true
			}
			if raw, err := json.Marshal(got); err != nil || !utf8.Valid(raw) {
				t.Errorf("reply cannot be stored: %v", err)
			}
		}
	})
}
