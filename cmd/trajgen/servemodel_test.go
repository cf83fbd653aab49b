package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestServeModel has the flags reach the server, and the end of it say what it did.
func TestServeModel(t *testing.T) {
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"p","gold":[{"tool_calls":[{"name":"terminal","arguments":{"command":"ls"}}]},{"content":"done"}]}`)
	cmd := exec.Command(build(t), "serve-model", "--policy", "oracle", "--dataset", dataset, "--addr", "127.0.0.1:0", "--rate", "0.001", "--burst", "1",
		"--tokens-per-minute", "100000", "--context", "4096", "--tool-format", "glm47", "--weight-version", "v7", "--delay", "1ms-2ms", "--speed", "1e6",
		"--outage", "100h-101h;refuse", "--errors", "vllm", "--drift", "whitespace", "--reasoning", "tags", "--slots", "4", "--max-in-flight", "9")
	var logged bytes.Buffer
	cmd.Stderr = &logged
	url := serving(t, cmd)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ask := func(method, url string) (int, http.Header, string) {
		req, _ := http.NewRequest(method, url, strings.NewReader(`{"model":"scripted","messages":[{"role":"user","content":"p"}],
			"tools":[{"type":"function","function":{"name":"terminal"}}]}`))
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(body)
	}
	status, header, body := ask("POST", url+"/chat/completions")
	if status != 200 || header.Get("X-Ratelimit-Limit-Requests") != "1" || header.Get("X-Ratelimit-Limit-Tokens") != "100000" ||
		!strings.Contains(body, `<tool_call>terminal<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>`) || !strings.Contains(body, `"weight_version":"v7"`) {
		t.Errorf("first request: %d %v %s", status, header, body)
	}
	if status, _, body := ask("POST", url+"/chat/completions"); status != 429 {
		t.Errorf("second request: %d %s, want it beyond the rate", status, body)
	}
	if _, _, body := ask("GET", url+"/models"); !strings.Contains(body, `"max_model_len":4096`) {
		t.Errorf("models: %s", body)
	}
	if _, _, body := ask("GET", strings.TrimSuffix(url, "/v1")+"/stats"); !strings.Contains(body, `"requests":2,"refused":1,`) {
		t.Errorf("stats: %s", body)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil || !strings.Contains(logged.String(), "requests=2 refused=1 ") {
		t.Errorf("it ends with %v and %s", err, &logged)
	}
}

func TestServeModelMistakes(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"--delay", "soon", "lognormal:2s,0.5"},
		{"--outage", "10s", "30s-90s;refuse"},
		{"--fault", "boom", "stall"},
		{"--tool-format", "hermess", "hermes"},
		{"--drift", "some", "strip-thinking"},
		{"--reasoning", "thoughts", "reasoning_details"},
		{"--errors", "anthropic", "vllm"},
		{"--rate", "-1", "0 or more"},
		{"--policy", "orcle", "oracle"},
	} {
		got := trajgen(t, "serve-model", "--policy", "noop", tt.flag, tt.value)
		if got.code != exitUsage || !strings.Contains(got.errOut, tt.want) || !strings.Contains(got.errOut, tt.value) {
			t.Errorf("%s %s: exit code %d, %s", tt.flag, tt.value, got.code, got.errOut)
		}
	}
}
