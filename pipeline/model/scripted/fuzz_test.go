package scripted_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"trajgen/pipeline/model/scripted"
)

// FuzzRequest: whatever comes, the answer is JSON or a stream, and never an accident of the server.
func FuzzRequest(f *testing.F) {
	const tools = `,"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","required":["a"],"properties":{"a":{"enum":[1]}}}}},{"type":"function","function":{"name":"terminal"}}]`
	for _, more := range []string{"", tools, tools + `,"tool_choice":"required","stop":["a","\""],"max_tokens":30`, tools + `,"stream":true,"logprobs":true,"top_logprobs":20,"return_token_ids":true`,
		`,"response_format":{"type":"json_object"},"stop":"a"`, tools + `,"tool_choice":{"type":"function","function":{"name":"terminal"}},"parallel_tool_calls":false`} {
		f.Add(`{"model":"scripted","messages":[{"role":"system","content":"s"},{"role":"user","content":"Fix t"}` +
			`,{"role":"assistant","content":"\u003cthink>","reasoning":"r","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{\"a\":1,"}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}]` + more + "}")
	}
	var servers []*scripted.Server
	for _, cfg := range []scripted.Config{{}, {ToolFormat: "glm45", Drift: "whitespace", ReasoningAs: "tags"}, {ToolFormat: "kimi_k2", Drift: "strip-thinking", Context: 900}} {
		cfg.Policy = scripted.Oracle
		servers = append(servers, newServer(f, cfg, task("t")))
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, server := range servers {
			for _, path := range []string{"/v1/chat/completions", "/tokenize"} {
				w := httptest.NewRecorder()
				server.Handler().ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
				if got := w.Body.String(); !json.Valid([]byte(got)) && !strings.HasSuffix(got, "data: [DONE]\n\n") {
					t.Errorf("%s: %d %q", path, w.Code, got)
				}
				if w.Code != 200 && w.Code != 400 && w.Code != 404 {
					t.Errorf("%s: status %d %s", path, w.Code, w.Body)
				}
			}
		}
	})
}
