package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	openai "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOracle(t *testing.T) {
	tk := task("t")
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, tk)
	want := []string{`|read_file({"path":"main.py","limit":20})`, `I change it.|terminal({"command":"sed -i s/1/2/ main.py"})`, "The value is 42."}

	byHeader := begin(t, server, tk, "e", "terminal", "read_file")
	got := byHeader.play(9)
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("by header (-want +got):\n%s", diff)
	}
	if got[0].finish != "tool_calls" || got[2].finish != "stop" || got[2].Reasoning != "done" {
		t.Errorf("finish reasons %q, %q and reasoning %q", got[0].finish, got[2].finish, got[2].Reasoning)
	}
	if again := byHeader.next(); again.String() != "The value is 42." {
		t.Errorf("one more request gives %q, want the answer again", again)
	}

	byPrompt := begin(t, server, tk, "", "terminal", "read_file")
	byPrompt.task = ""
	if diff := cmp.Diff(want, texts(byPrompt.play(9))); diff != "" {
		t.Errorf("by prompt (-want +got):\n%s", diff)
	}

	ids := map[string]bool{}
	for _, a := range got {
		for _, call := range a.ToolCalls {
			ids[call.ID] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("ids %v, want two", ids)
	}
	if other := begin(t, server, tk, "other", "terminal", "read_file").next(); ids[other.ToolCalls[0].ID] {
		t.Errorf("another episode has the same call id %s", other.ToolCalls[0].ID)
	}
}

// TestSamePromptTwice tells tasks apart by their system message.
func TestSamePromptTwice(t *testing.T) {
	one, two := task("t"), task("t")
	two.ID, two.System, two.Gold = "t#2", "You are bold.", []episode.Step{{Content: "second"}}
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, one, two)
	for _, tk := range []*episode.Task{one, two} {
		c := begin(t, server, tk, "e", "terminal", "read_file")
		c.task = ""
		answers := c.play(9)
		if got, want := answers[len(answers)-1].String(), tk.Gold[len(tk.Gold)-1].Content; got != want {
			t.Errorf("task %s: answer %q, want %q", tk.ID, got, want)
		}
	}
	// A task that is learnt again with another solution replaces itself.
	changed := task("t")
	changed.Gold = []episode.Step{{Content: "changed"}}
	server.Learn(changed)
	c := begin(t, server, changed, "e")
	c.task = ""
	if got := c.next().String(); got != "changed" {
		t.Errorf("after learning again: %q, want the new answer", got)
	}
}

// TestScriptOfAnEpisode gives one episode of a task another script than the others have.
func TestScriptOfAnEpisode(t *testing.T) {
	tk := task("t")
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, tk)
	server.Learn(&episode.Task{ID: "own", Prompt: tk.Prompt, Gold: []episode.Step{{Content: "another"}}})
	for id, want := range map[string]string{"own": "another", "e": `|read_file({"path":"main.py","limit":20})`} {
		if got := begin(t, server, tk, id, "terminal", "read_file").next().String(); got != want {
			t.Errorf("episode %s says %q, want %q", id, got, want)
		}
	}
	server.Forget("own")
	if got := begin(t, server, tk, "own", "terminal", "read_file").next().String(); got == "another" {
		t.Errorf("it says %q after it was forgotten", got)
	}
}

// TestSeveralUserMessages plays on over them, past assistant messages that the dataset wrote.
func TestSeveralUserMessages(t *testing.T) {
	tk := &episode.Task{ID: "t", Prompt: []episode.Message{
		{Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Hello, what is it?"}, {Role: "user", Content: "First"}, {Role: "user", Content: "Second"},
	}, Gold: []episode.Step{gold("", "terminal", `{"command":"ls"}`), {Content: "one"}, gold("", "terminal", `{"command":"pwd"}`), {Content: "two"}}}
	c := begin(t, newServer(t, scripted.Config{Policy: scripted.Oracle}, tk), tk, "e", "terminal")
	c.say("assistant", "Hello, what is it?")
	c.say("user", "First")
	first := texts(c.play(9))
	c.say("user", "Second")
	second := texts(c.play(9))
	if diff := cmp.Diff([][]string{{`|terminal({"command":"ls"})`, "one"}, {`|terminal({"command":"pwd"})`, "two"}}, [][]string{first, second}); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

// TestShortened goes on where it was when a harness leaves old turns out.
func TestShortened(t *testing.T) {
	tk := task("t")
	c := begin(t, newServer(t, scripted.Config{Policy: scripted.Oracle}, tk), tk, "e", "terminal", "read_file")
	c.next()
	c.next()
	c.messages = append(c.messages[:2:2], c.messages[4:]...) // without the first call and its result
	if got := c.next().String(); got != "The value is 42." {
		t.Errorf("after the second call comes %q, want the answer", got)
	}
}

func TestNoop(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Noop})
	if got := texts(begin(t, server, task("unknown"), "e", "terminal").play(9)); !slices.Equal(got, []string{"I cannot help with that."}) {
		t.Errorf("noop says %q", got)
	}
}

func TestReplay(t *testing.T) {
	record := []episode.Message{
		{Role: "user", Content: "Hi"},
		{Role: "assistant", Reasoning: "hm", Calls: []episode.Call{{ID: "x1", Name: "terminal", Arguments: `{"broken`}}},
		{Role: "tool", ToolCallID: "x1", Content: "no"},
		{Role: "assistant", Content: "bye"},
	}
	server := newServer(t, scripted.Config{Policy: scripted.Replay, Replay: func(id string) ([]episode.Message, bool) {
		return record, id == "known"
	}})
	c := begin(t, server, task("t"), "known", "terminal")
	got := c.play(9)
	if diff := cmp.Diff([]string{`|terminal({"broken)`, "bye"}, texts(got)); diff != "" {
		t.Errorf("replay (-want +got):\n%s", diff)
	}
	if got[0].ToolCalls[0].ID != "x1" || got[0].Reasoning != "hm" {
		t.Errorf("first turn %+v, want the recorded id and reasoning", got[0])
	}
	for _, tt := range []struct{ id, code string }{{"known", "recording_ended"}, {"unknown", "unknown_episode"}} {
		raw, _ := json.Marshal(map[string]any{"model": "scripted", "messages": c.messages})
		req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(string(raw)))
		req.Header.Set("X-Trajgen-Episode", tt.id)
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, req)
		if w.Code != 400 || !strings.Contains(w.Body.String(), tt.code) {
			t.Errorf("episode %s: %d %s, want 400 with %s", tt.id, w.Code, w.Body, tt.code)
		}
	}
}

// TestLibrary has the plain go-openai client speak with the server over its socket.
func TestLibrary(t *testing.T) {
	tk := task("t")
	tk.Gold[0].Calls = append(tk.Gold[0].Calls, episode.GoldCall{Name: "terminal", Arguments: json.RawMessage(`{"command":"ls"}`)})
	server := newServer(t, scripted.Config{Policy: scripted.Oracle, APIKey: "right", Model: "org/tiny"}, tk)
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := func(key string) *openai.Client {
		cfg := openai.DefaultConfig(key)
		cfg.BaseURL, cfg.HTTPClient = url, &http.Client{Transport: transport}
		return openai.NewClientWithConfig(cfg)
	}
	ctx := t.Context()
	models, err := client("right").ListModels(ctx)
	if err != nil || len(models.Models) != 1 || models.Models[0].ID != "org/tiny" {
		t.Errorf("models = %v, %v", models.Models, err)
	}
	if m, err := client("right").GetModel(ctx, "org/tiny"); err != nil || m.ID != "org/tiny" {
		t.Errorf("model = %v, %v", m, err)
	}
	status := func(err error) int {
		if e, ok := errors.AsType[*openai.APIError](err); ok {
			return e.HTTPStatusCode
		}
		return 0
	}
	request := openai.ChatCompletionRequest{
		Model: "org/tiny", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "Fix t"}},
		Tools: []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{Name: "terminal"}}, {Type: "function", Function: &openai.FunctionDefinition{Name: "read_file"}}},
	}
	whole, err := client("right").CreateChatCompletion(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	if calls := whole.Choices[0].Message.ToolCalls; len(calls) != 2 || whole.Choices[0].FinishReason != "tool_calls" || whole.Usage.TotalTokens == 0 {
		t.Errorf("reply = %+v, want two calls and usage", whole)
	}
	request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := client("right").CreateChatCompletionStream(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	args, usage := map[int]string{}, 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Usage != nil {
			usage = chunk.Usage.TotalTokens
		}
		for _, choice := range chunk.Choices {
			for _, call := range choice.Delta.ToolCalls {
				args[*call.Index] += call.Function.Arguments
			}
		}
	}
	for i, call := range whole.Choices[0].Message.ToolCalls {
		if args[i] != call.Function.Arguments {
			t.Errorf("streamed arguments %q, want %q", args[i], call.Function.Arguments)
		}
	}
	if usage != whole.Usage.TotalTokens {
		t.Errorf("streamed usage %d, want %d", usage, whole.Usage.TotalTokens)
	}
	if _, err := client("wrong").ListModels(ctx); status(err) != 401 {
		t.Errorf("wrong key: %v, want 401", err)
	}
	request.Model = "other"
	if _, err := client("right").CreateChatCompletion(ctx, request); status(err) != 404 {
		t.Errorf("unknown model: %v, want 404", err)
	}
	request.Model, request.Messages = "org/tiny", []openai.ChatCompletionMessage{{Role: "user", Content: "who?"}}
	if _, err := client("right").CreateChatCompletion(ctx, request); status(err) != 400 || !strings.Contains(err.Error(), "user message") {
		t.Errorf("unknown task: %v, want 400", err)
	}
}

// TestProtocol refuses what OpenAI refuses.
func TestProtocol(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Noop})
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}`
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"not JSON", `{`, 400, "could not parse"},
		{"no messages", `{"model":"scripted","messages":[]}`, 400, "too short"},
		{"unknown role", `{"model":"scripted","messages":[{"role":"robot","content":"x"}]}`, 400, "robot"},
		{"no content", `{"model":"scripted","messages":[{"role":"user"}]}`, 400, "messages[0].content"},
		{"call without answer", `{"model":"scripted","messages":[{"role":"user","content":"x"},` + call + `,{"role":"user","content":"y"}]}`, 400, "must be followed"},
		{"call without answer at the end", `{"model":"scripted","messages":[` + call + `]}`, 400, "must be followed"},
		{"answer without call", `{"model":"scripted","messages":[` + call + `,{"role":"tool","tool_call_id":"b","content":""}]}`, 400, "answers no call"},
		{"answer without content", `{"model":"scripted","messages":[` + call + `,{"role":"tool","tool_call_id":"a"}]}`, 400, "messages[1].content"},
		{"broken tool", `{"model":"scripted","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}]}`, 400, "tools[0]"},
		{"two choices", `{"model":"scripted","messages":[{"role":"user","content":"x"}],"n":2}`, 400, "n is 2"},
		{"unknown model", `{"model":"x","messages":[{"role":"user","content":"x"}]}`, 404, "model_not_found"},
		{"good", `{"model":"scripted","messages":[` + call + `,{"role":"tool","tool_call_id":"a","content":""}]}`, 200, "I cannot help"},
		{"content as parts", `{"model":"scripted","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, 200, "I cannot help"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			server.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(tt.body)))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v2/models", nil))
	if w.Code != 404 || !strings.Contains(w.Body.String(), "unknown_url") {
		t.Errorf("unknown URL: %d %s", w.Code, w.Body)
	}
}

func TestTokenLimit(t *testing.T) {
	tk := task("t")
	server := newServer(t, scripted.Config{Policy: scripted.Oracle}, tk)
	c := begin(t, server, tk, "e", "terminal", "read_file")
	c.extra = map[string]any{"max_tokens": 48} // the tags and the name are 37 of them
	if got := c.next(); got.finish != "length" || got.String() != `|read_file({"path":"ma)` {
		t.Errorf("cut reply = %q (%s), want the start of the arguments and length", got, got.finish)
	}
	c = begin(t, server, tk, "e", "terminal", "read_file")
	c.extra = map[string]any{"max_tokens": 20}
	if got := c.next(); got.finish != "length" || got.String() != "" {
		t.Errorf("cut reply = %q (%s), want no call without its name, and length", got, got.finish)
	}
}

func TestNoParallelCalls(t *testing.T) {
	tk := task("t")
	tk.Gold[0].Calls = append(tk.Gold[0].Calls, episode.GoldCall{Name: "terminal", Arguments: json.RawMessage(`{"command":"ls"}`)})
	c := begin(t, newServer(t, scripted.Config{Policy: scripted.Oracle}, tk), tk, "e", "terminal", "read_file")
	c.extra = map[string]any{"parallel_tool_calls": false}
	if got := c.play(9); len(got) != 4 || got[1].String() != `|terminal({"command":"ls"})` {
		t.Errorf("turns = %q, want one call each", texts(got))
	}
}

func TestCloseEndsStalls(t *testing.T) {
	server := newServer(t, scripted.Config{Policy: scripted.Noop, Faults: []string{"stall"}, FaultRate: 1})
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(context.Background(), "POST", url+"/chat/completions",
		strings.NewReader(`{"model":"scripted","messages":[{"role":"user","content":"x"}]}`))
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stalled reply ended well")
	}
	resp.Body.Close()
	if _, err := server.Start("127.0.0.1:0"); err == nil {
		t.Error("a closed server starts again")
	}
}

func TestConfig(t *testing.T) {
	_, err := scripted.New(scripted.Config{Policy: "orcle", Skill: 2, Delay: "-1s", FaultRate: -1, Faults: []string{"boom", "429;times=0", "slow;delay=x", "500;a=b"}})
	for _, part := range []string{`unknown policy "orcle" (have oracle, noop, noisy, replay, retrier:0.9, giver_up, gullible:0.5, checker:0.8,0.9, switcher:0.9)`, "skill 2", `latency "-1s"`, "fault rate -1", `"boom"`, `times "0"`, `delay "x"`, `option "a"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("New() = %v, want it to contain %q", err, part)
		}
	}
	if _, err := scripted.New(scripted.Config{Policy: scripted.Replay}); err == nil {
		t.Error("replay without recordings is accepted")
	}
}

// TestFaultRate draws the same faults again, near the rate, and a new one for a retry.
func TestFaultRate(t *testing.T) {
	run := func() (faults []int, retried int) {
		server := newServer(t, scripted.Config{Policy: scripted.Noop, FaultRate: 0.2, Seed: 5})
		for i := range 2000 {
			status := 0
			for try := range 9 {
				req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"model":"scripted","messages":[{"role":"user","content":"x"}]}`))
				req.Header.Set("X-Trajgen-Episode", fmt.Sprint(i))
				w := httptest.NewRecorder()
				server.Handler().ServeHTTP(w, req)
				if try == 0 {
					faults = append(faults, w.Code)
				}
				if status = w.Code; status == 200 {
					retried += try
					break
				}
			}
			if status != 200 {
				t.Fatalf("request %d never succeeds", i)
			}
		}
		return faults, retried
	}
	first, retried := run()
	second, _ := run()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error("the same seed gives other faults")
	}
	bad := len(first) - len(slices.DeleteFunc(slices.Clone(first), func(s int) bool { return s != 200 }))
	if bad < 320 || bad > 480 {
		t.Errorf("%d of 2000 requests are refused, want about 400", bad)
	}
	if retried < bad {
		t.Errorf("%d retries for %d faults", retried, bad)
	}
}
