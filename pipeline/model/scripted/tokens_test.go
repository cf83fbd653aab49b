package scripted_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// document is a reply as far as these tests look at it.
type document struct {
	Choices []struct {
		Message struct {
			Content   *string
			Reasoning string            `json:"reasoning_content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		}
		Delta    json.RawMessage
		Finish   string `json:"finish_reason"`
		Stop     string `json:"stop_reason"`
		Tokens   []int  `json:"token_ids"`
		Logprobs *struct {
			Content []struct {
				Token   string
				Logprob float64
				Bytes   []int
				Top     []struct{ Logprob float64 } `json:"top_logprobs"`
			}
		}
	}
	Prompt []int `json:"prompt_token_ids"`
	Usage  struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		More struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	Metadata map[string]string
}

// post sends a body and gives the answer back.
func post(t testing.TB, server *scripted.Server, path string, body any, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("POST", path, strings.NewReader(string(raw)))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, req)
	return w
}

// ask is post for a chat completion that must succeed.
func ask(t testing.TB, server *scripted.Server, body map[string]any, headers ...string) document {
	t.Helper()
	w := post(t, server, "/v1/chat/completions", body, headers...)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var d document
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func offer(names ...string) (tools []any) {
	for _, name := range names {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name,
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"}}}})
	}
	return tools
}

// thoughtful is a task whose solution thinks, calls twice at once, and has characters of several bytes.
func thoughtful() *episode.Task {
	return &episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "Räum auf <b>"}}, Gold: []episode.Step{
		{Content: "Zuerst ☁", Reasoning: "two looks", Calls: []episode.GoldCall{
			{Name: "terminal", Arguments: json.RawMessage(`{"command":"ls \"ä\", <x>","timeout":5}`)}, {Name: "terminal", Arguments: json.RawMessage(`{"command":"pwd"}`)}}},
		{Reasoning: "once more", Calls: []episode.GoldCall{{Name: "terminal", Arguments: json.RawMessage(`{"command":"rm x"}`)}}},
		{Content: "Fertig.", Reasoning: "that is all"},
	}}
}

// exchange is a turn with its tokens.
type exchange struct{ prompt, reply []int }

// converse plays the thoughtful task with a client that sends all back that it got, and gives the calls from the gold
// where the server writes them as text.
func converse(t *testing.T, cfg scripted.Config) []exchange {
	t.Helper()
	cfg.Policy = scripted.Oracle
	tk := thoughtful()
	server := newServer(t, cfg, tk)
	messages := []any{map[string]any{"role": "user", "content": tk.Prompt[0].Content}}
	var turns []exchange
	calls := 0
	for n, step := range tk.Gold {
		body := map[string]any{"model": "scripted", "messages": messages, "tools": offer("terminal"), "return_token_ids": true}
		d := ask(t, server, body, "X-Trajgen-Task", "t", "X-Trajgen-Episode", "e")
		turns = append(turns, exchange{d.Prompt, d.Choices[0].Tokens})
		if len(d.Prompt) != d.Usage.Prompt || len(d.Choices[0].Tokens) != d.Usage.Completion {
			t.Errorf("turn %d: usage %+v, but %d and %d ids", n, d.Usage, len(d.Prompt), len(d.Choices[0].Tokens))
		}
		delete(body, "return_token_ids")
		if counted := ask(t, server, body, "X-Trajgen-Task", "t", "X-Trajgen-Episode", "e"); counted.Usage != d.Usage || counted.Prompt != nil {
			t.Errorf("turn %d: usage %+v without ids, %+v with them", n, counted.Usage, d.Usage)
		}
		if n > 0 && d.Usage.Details.Cached != len(turns[n-1].prompt) && cfg.Drift == "" {
			t.Errorf("turn %d: %d tokens are cached, the last prompt had %d", n, d.Usage.Details.Cached, len(turns[n-1].prompt))
		}
		message := map[string]any{"role": "assistant", "content": step.Content, "reasoning_content": step.Reasoning}
		var results []any
		var toolCalls []any
		for _, c := range step.Calls {
			id := fmt.Sprintf("functions.%s:%d", c.Name, calls)
			calls++
			toolCalls = append(toolCalls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)}})
			results = append(results, map[string]any{"role": "tool", "tool_call_id": id, "content": "{\"ok\":true}\n"})
		}
		if toolCalls != nil {
			message["tool_calls"] = toolCalls
		}
		messages = append(append(messages, message), results...)
	}
	return turns
}

// TestTokensAddUp: what a turn was asked and said is, token for token, how the next prompt begins, in every format.
func TestTokensAddUp(t *testing.T) {
	for _, format := range append([]string{""}, scripted.ToolFormats()...) {
		turns := converse(t, scripted.Config{ToolFormat: format})
		for n := 1; n < len(turns); n++ {
			before := slices.Concat(turns[n-1].prompt, turns[n-1].reply)
			if !slices.Equal(before, turns[n].prompt[:min(len(before), len(turns[n].prompt))]) {
				t.Errorf("format %q: the prompt of turn %d does not begin with turn %d", format, n, n-1)
			}
		}
	}
}

// TestDrift: each way to drift leaves the first prompt alone and changes the next.
func TestDrift(t *testing.T) {
	plain := converse(t, scripted.Config{})
	for _, drift := range scripted.Drifts()[1:] {
		turns := converse(t, scripted.Config{Drift: drift})
		if !slices.Equal(turns[0].prompt, plain[0].prompt) || !slices.Equal(turns[0].reply, plain[0].reply) {
			t.Errorf("%s changes the first turn", drift)
		}
		before := slices.Concat(turns[0].prompt, turns[0].reply)
		if slices.Equal(before, turns[1].prompt[:min(len(before), len(turns[1].prompt))]) {
			t.Errorf("%s: the second prompt begins with the first turn", drift)
		}
	}
}

// TestTokenize: the endpoints know the tokens of a prompt, and the text of tokens.
func TestTokenize(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Noop, Context: 5000})
	body := map[string]any{"model": "scripted", "messages": []any{map[string]any{"role": "user", "content": "<b>ä"}}, "return_token_ids": true}
	prompt := ask(t, server, body).Prompt
	var tokens struct {
		Count  int
		Max    int `json:"max_model_len"`
		Tokens []int
	}
	w := post(t, server, "/tokenize", body)
	if err := json.Unmarshal(w.Body.Bytes(), &tokens); err != nil || !slices.Equal(tokens.Tokens, prompt) || tokens.Count != len(prompt) || tokens.Max != 5000 {
		t.Errorf("tokenize: %v %s, want the ids of the prompt: %v", err, w.Body, prompt)
	}
	w = post(t, server, "/v1/detokenize", map[string]any{"tokens": prompt})
	var text struct{ Prompt string }
	json.Unmarshal(w.Body.Bytes(), &text)
	if want := "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<b>ä<|im_end|>\n<|im_start|>assistant\n"; text.Prompt != want {
		t.Errorf("detokenize = %q, want %q", text.Prompt, want)
	}
	if w = post(t, server, "/tokenize", map[string]any{"prompt": "<think>ab"}); !strings.Contains(w.Body.String(), "[259,97,98]") {
		t.Errorf("tokenize = %s", w.Body)
	}
	if w = post(t, server, "/detokenize", map[string]any{"tokens": []int{9999}}); w.Code != 400 || !strings.Contains(w.Body.String(), "no token 9999") {
		t.Errorf("detokenize = %d %s", w.Code, w.Body)
	}
}

// TestTokenCut: at every limit the tokens are the first ones of the whole reply, whole and in a stream, and the
// characters stay whole.
func TestTokenCut(t *testing.T) {
	tk := thoughtful()
	server := newServer(t, scripted.Config{Policy: scripted.Oracle, WeightVersion: "v3"}, tk)
	body := map[string]any{"model": "scripted", "messages": []any{map[string]any{"role": "user", "content": tk.Prompt[0].Content}},
		"tools": offer("terminal"), "return_token_ids": true, "logprobs": true, "top_logprobs": 3}
	whole := ask(t, server, body)
	all := whole.Choices[0].Tokens
	if whole.Metadata["weight_version"] != "v3" || whole.Usage.More.Reasoning != len("two looks") || all[len(all)-1] != 258 {
		t.Errorf("reply %+v, want a weight version, the tokens of the reasoning, and the end of the turn", whole)
	}
	for limit := 1; limit <= len(all); limit++ {
		body["max_completion_tokens"] = limit
		d := ask(t, server, body)
		got := d.Choices[0].Tokens
		if len(got) > limit || len(got) < limit-3 || !slices.Equal(got, all[:len(got)]) || (d.Choices[0].Finish == "length") != (limit < len(all)) {
			t.Errorf("limit %d: %d tokens, finish %q", limit, len(got), d.Choices[0].Finish)
		}
		if strings.Contains(fmt.Sprint(*orEmpty(d.Choices[0].Message.Content)), "\uFFFD") {
			t.Errorf("limit %d: content %q", limit, *d.Choices[0].Message.Content)
		}
		body["stream"] = true
		w := post(t, server, "/v1/chat/completions", body)
		delete(body, "stream")
		var streamed, prompt []int
		var sums []float64
		for line := range strings.Lines(w.Body.String()) {
			var chunk document
			data, ok := strings.CutPrefix(line, "data: {")
			if !ok || json.Unmarshal([]byte("{"+data), &chunk) != nil {
				continue
			}
			prompt = append(prompt, chunk.Prompt...)
			streamed = append(streamed, chunk.Choices[0].Tokens...)
			if lp := chunk.Choices[0].Logprobs; lp != nil {
				for _, entry := range lp.Content {
					sums = append(sums, entry.Logprob)
				}
			}
		}
		if !slices.Equal(streamed, got) || !slices.Equal(prompt, d.Prompt) || len(sums) != len(got) {
			t.Errorf("limit %d: the stream has %d tokens, %d of the prompt and %d probabilities", limit, len(streamed), len(prompt), len(sums))
		}
		for i, entry := range d.Choices[0].Logprobs.Content {
			if entry.Logprob != whole.Choices[0].Logprobs.Content[i].Logprob || entry.Logprob != sums[i] {
				t.Fatalf("limit %d: token %d has another probability", limit, i)
			}
		}
	}
	for i, entry := range whole.Choices[0].Logprobs.Content {
		total, last := 0.0, math.Inf(1)
		for _, top := range entry.Top {
			if top.Logprob > last {
				t.Errorf("token %d: alternatives out of order", i)
			}
			last = top.Logprob
			total += math.Exp(top.Logprob)
		}
		if len(entry.Top) != 3 || entry.Top[0].Logprob != entry.Logprob || total > 1.001 || len(entry.Bytes) == 0 {
			t.Fatalf("token %d: %+v, want three alternatives of which the first was taken", i, entry)
		}
	}
}

func orEmpty(s *string) *string {
	if s == nil {
		return new(string)
	}
	return s
}
