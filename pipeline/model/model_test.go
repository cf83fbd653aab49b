package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	hello = []episode.Message{{Role: "user", Content: "Hello"}}

	terminal = json.RawMessage(`{"type":"function","function":{"name":"terminal","parameters":{"type":"object"}}}`)
	readFile = json.RawMessage(`{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}`)
)

// open makes a client of the endpoint, quick to give up.
func open(t testing.TB, cfg model.Config) *model.Client {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "m"
	}
	if cfg.RetryBase == 0 {
		cfg.RetryBase, cfg.RetryMax = time.Millisecond, 2*time.Millisecond
	}
	client, err := model.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// endpoint answers with whatever handle writes.
func endpoint(t testing.TB, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// says is an endpoint that gives the same answer to everything.
func says(t testing.TB, status int, body string) string {
	t.Helper()
	return endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// play starts a scripted server that knows the tasks.
func play(t testing.TB, cfg scripted.Config, tasks ...*episode.Task) string {
	t.Helper()
	server, err := scripted.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		server.Learn(task)
	}
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return url
}

// asError unpacks what Complete and Probe promise.
func asError(t *testing.T, err error) *model.Error {
	t.Helper()
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("error = %v (%T), want a *model.Error", err, err)
	}
	return e
}

func reply(t *testing.T, client *model.Client, req model.Request) model.Reply {
	t.Helper()
	if req.Messages == nil {
		req.Messages = hello
	}
	got, err := client.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got.Waited = 0 // a matter of how busy the machine is
	return got
}

// TestWire shows every byte that goes out.
func TestWire(t *testing.T) {
	var body []byte
	var header http.Header
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
	zero, seed := 0.0, 7
	client := open(t, model.Config{
		Settings:     model.Settings{Name: "gpt-5-local", BaseURL: url + "/", Temperature: &zero, TopP: &zero, MaxTokens: 50, ExtraBody: map[string]any{"min_p": 0.1, "seed": nil}, Headers: map[string]string{"X-Title": "trajgen tests"}},
		APIKey:       "sk-test-1234",
		TraceHeaders: true,
	})
	// Odd spacing, key order and characters that json.Marshal would escape.
	odd := json.RawMessage(`{ "function":{"name":"a","description":"<b> & c"} ,"type":"function"}`)
	reply(t, client, model.Request{
		Messages: []episode.Message{
			{Role: "system", Content: "Be <brief>."},
			{Role: "user", Content: ""},
			{Role: "assistant", Reasoning: "kept to ourselves", Calls: []episode.Call{{ID: "c1", Name: "a", Arguments: `{"x": 1,`}}},
			{Role: "tool", ToolCallID: "c1", Name: "a", Content: ""},
		},
		Tools: []json.RawMessage{odd, odd}, Seed: &seed, Asker: model.Asker{Episode: "ep 1", Task: "täsk/1"},
	})
	want := `{"max_tokens":50,"min_p":0.1,"model":"gpt-5-local","stream":false,"temperature":0,"top_p":0,` +
		`"messages":[{"role":"system","content":"Be <brief>."},{"role":"user","content":""},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{\"invalid_arguments\":\"{\\\"x\\\": 1,\"}"}}]},` +
		`{"role":"tool","content":"","tool_call_id":"c1","name":"a"}],` +
		`"tools":[` + string(odd) + `,` + string(odd) + `]}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("request body (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-test-1234", "X-Title": "trajgen tests",
		"X-Trajgen-Episode": "ep%201", "X-Trajgen-Task": "t%C3%A4sk%2F1",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("header %s = %q, want %q", name, got, want)
		}
	}
}

// TestPlaces asks servers behind base URLs of other forms.
func TestPlaces(t *testing.T) {
	var asked []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+" "+r.URL.String())
		io.WriteString(w, `{"data":[],"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	})
	tcp := httptest.NewServer(handler)
	t.Cleanup(tcp.Close)
	socket := filepath.Join(t.TempDir(), "m.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	unix := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	unix.Start()
	t.Cleanup(unix.Close)
	host := strings.TrimPrefix(tcp.URL, "http://")
	tests := []struct{ base, models, chat string }{
		{tcp.URL + "/openai/deployments/d/?api-version=2024-10-21", host + " /openai/deployments/d/models?api-version=2024-10-21", host + " /openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{"unix://" + socket, "localhost /v1/models", "localhost /v1/chat/completions"},
		{"http+unix://" + url.PathEscape(socket) + "/api/v3/", "localhost /api/v3/models", "localhost /api/v3/chat/completions"},
		{"http+unix://" + url.PathEscape(socket) + "/api/v3?api-version=1", "localhost /api/v3/models?api-version=1", "localhost /api/v3/chat/completions?api-version=1"},
		{"unix://" + socket + "?api-version=1", "localhost /v1/models?api-version=1", "localhost /v1/chat/completions?api-version=1"},
	}
	for _, tt := range tests {
		asked = nil
		client := open(t, model.Config{Settings: model.Settings{BaseURL: tt.base}, Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Host != host {
				t.Errorf("a proxy is asked for %s", r.URL)
			}
			return nil, nil
		}})
		if err := client.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.base, err)
		}
		if diff := cmp.Diff([]string{tt.models, tt.chat}, asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.base, diff)
		}
	}
	unix.Close()
	_, err = open(t, model.Config{Settings: model.Settings{BaseURL: "unix://" + socket}}).Complete(t.Context(), model.Request{Messages: hello})
	if e := asError(t, err); e.Class != model.ClassConnection || !strings.Contains(e.Message, `Post "`+socket+`": dial unix `+socket) {
		t.Errorf("error = %v, want one that names the socket", e)
	}
}

func TestStreamEqualsWhole(t *testing.T) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{
		{
			Content: "Erst sehe ich mich um: " + strings.Repeat("Übersicht ", 40), Reasoning: strings.Repeat("hm, ", 50),
			Calls: []episode.GoldCall{
				{Name: "terminal", Arguments: json.RawMessage(`{"command":"` + strings.Repeat("ä", 300) + `"}`)},
				{Name: "read_file", Arguments: json.RawMessage(`{"path":"b"}`)},
			},
		},
		{Content: "fertig"},
	}}
	url := play(t, scripted.Config{Policy: scripted.Oracle}, task)
	whole := open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url}, TraceHeaders: true})
	stream := open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: true}, TraceHeaders: true})
	messages := hello
	for turn := range 2 {
		req := model.Request{Messages: messages, Tools: []json.RawMessage{terminal, readFile}, Asker: model.Asker{Episode: "e", Task: "t"}}
		a, b := reply(t, whole, req), reply(t, stream, req)
		a.RequestID, b.RequestID = "", "" // a hash of the body, which says stream or not
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("turn %d: whole and stream differ:\n%s", turn, diff)
		}
		messages = append(messages[:len(messages):len(messages)], a.Message)
		for _, call := range a.Message.Calls {
			messages = append(messages, episode.Message{Role: "tool", ToolCallID: call.ID, Content: "{}"})
		}
		if turn == 0 {
			if len(a.Message.Calls) != 2 || a.FinishReason != "tool_calls" || a.Message.Reasoning == "" || a.Usage.Reasoning == 0 {
				t.Errorf("first reply = %+v, want reasoning and two calls", a)
			}
			if !a.Usage.Reported || a.Usage.Prompt == 0 || a.Usage.Completion == 0 || a.Usage.Cached != 0 {
				t.Errorf("usage = %+v, want counts and nothing cached", a.Usage)
			}
		} else if a.Message.Content != "fertig" || a.Usage.Cached == 0 {
			t.Errorf("last reply = %+v, want the answer and a cached prompt", a)
		}
	}
}

func TestConcurrency(t *testing.T) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "fine"}}}
	url := play(t, scripted.Config{Policy: scripted.Oracle, FaultRate: 0.3}, task)
	clients := []*model.Client{
		open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url}, Patience: model.Patience{Retries: 20}, TraceHeaders: true}),
		open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: true}, Patience: model.Patience{Retries: 20}, TraceHeaders: true}),
	}
	const workers, each = 64, 10
	results := make(chan error, workers)
	for w := range workers {
		go func() {
			for i := range each {
				id := fmt.Sprintf("e%d-%d", w, i)
				got, err := clients[i%2].Complete(t.Context(), model.Request{Messages: hello, Asker: model.Asker{Episode: id}})
				if err == nil && got.Message.Content != "fine" {
					err = fmt.Errorf("%s: content %q", id, got.Message.Content)
				}
				if err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range workers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestConnectionsAreKept counts dials: a busy client must not dial for each request, streamed or not.
func TestConnectionsAreKept(t *testing.T) {
	for _, stream := range []bool{false, true} {
		dials := make(chan struct{}, 100)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !stream {
				io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
				return
			}
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond) // the end of the body comes late
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				dials <- struct{}{}
			}
		}
		server.Start()
		client := open(t, model.Config{Settings: model.Settings{BaseURL: server.URL, Stream: stream}})
		for range 20 {
			reply(t, client, model.Request{})
		}
		if n := len(dials); n != 1 {
			t.Errorf("stream %v: %d connections for 20 calls, want 1", stream, n)
		}
		client.Close()
		server.Close()
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		give model.Config
		want []string // parts of the message
	}{
		{"nothing", model.Config{}, []string{"model name is empty", "base URL is empty"}},
		{"no scheme", model.Config{Settings: model.Settings{Name: "m", BaseURL: "localhost:8000"}}, []string{"want http:// or https://"}},
		{"password", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://u:hush@h/v1"}}, []string{"carries a user or password"}},
		{"key in the query", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h/v1?api-version=1&key=hush"}}, []string{"base URL of h", "a key in its own setting"}},
		{"socket without a path", model.Config{Settings: model.Settings{Name: "m", BaseURL: "unix://m.sock"}}, []string{`"unix://m.sock" has no path of a socket`}},
		{"key in the query of a socket", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http+unix://%2Fm.sock/v1?key=hush"}}, []string{"base URL of /m.sock", "a key in its own setting"}},
		{"path behind a socket", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http+unix://%2Fm.sock/v1/chat/completions"}}, []string{"without /chat/completions"}},
		{"path before a query", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h/v1/chat/completions?api-version=1"}}, []string{"without /chat/completions"}},
		{"path", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h/v1/chat/completions"}}, []string{"without /chat/completions"}},
		{"key", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h"}, APIKey: "hush\n"}, []string{"white space"}},
		{"extra", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h", ExtraBody: map[string]any{"tools": 1, "n": 2, "x": func() {}}}},
			[]string{`"tools" is set by the toolsets`, `"n" is set by`, `"x"`}},
		{"header", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h", Headers: map[string]string{"X-A": "hush\r\nX-B: c"}}}, []string{`"X-A"`}},
		{"negative", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h"}, Patience: model.Patience{Retries: -1, Timeout: -1}}, []string{"retries -1", "timeout -1ns"}},
		{"good", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h/v1"}}, nil},
		{"good query", model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://h/v1?api-version=preview&family=code-token"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.give.Validate()
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("Validate() = %v, want %v", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Validate() = %q, want it to contain %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("Validate() = %q tells a secret", err)
			}
		})
	}
}
