package mcpserve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/mcpserve"
)

// books keeps what happened to sessions.
type books struct {
	mu     sync.Mutex
	opened int
	closed int
	called func(call episode.ToolCall) error
}

// server is a server of two tools of ours.
func server(t *testing.T, b *books, sessions int) *mcpserve.Server {
	t.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	says, err := registry.DefineSchema(registry.Definition{Name: "says", Toolset: "ours", Description: "Says it."}, schema,
		func(ctx context.Context, env *registry.Env, arguments json.RawMessage) (any, error) {
			if strings.Contains(string(arguments), "wait") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return json.RawMessage(arguments), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	shows, err := registry.DefineSchema(registry.Definition{Name: "shows", Toolset: "ours", Description: "Shows it."}, json.RawMessage(`{"type":"object"}`),
		func(_ context.Context, env *registry.Env, _ json.RawMessage) (any, error) {
			var data bytes.Buffer
			if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 9, 9))); err != nil {
				return nil, err
			}
			return "seen", env.Attach(registry.Image{MIME: "image/png", Data: data.Bytes()})
		})
	if err != nil {
		t.Fatal(err)
	}
	reg, err := registry.New(says, shows)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"ours"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	images := media.Open(t.TempDir())
	s := mcpserve.New(mcpserve.Config{
		Version: "1", Toolset: set, Sessions: sessions, Prompt: "Count the lines.",
		Open: func(_ context.Context, number int) (*mcpserve.Desk, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.opened++; number == 3 {
				return nil, errors.New("no sandbox")
			}
			return &mcpserve.Desk{
				Session: set.Session(registry.SessionConfig{Sees: true, Images: images}), Image: images.Read, Called: b.called,
				Close: func() error {
					b.mu.Lock()
					defer b.mu.Unlock()
					b.closed++
					return nil
				},
			}, nil
		},
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connect connects a client in memory.
func connect(t *testing.T, s *mcpserve.Server) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	go func() { _ = s.Serve(context.Background(), there) }()
	return client(t, here)
}

func client(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call is the text of a result, with its kind unless it is plain text.
func call(t *testing.T, c *mcp.ClientSession, name string, arguments any) string {
	t.Helper()
	got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "error: " + err.Error()
	}
	text := ""
	for _, each := range got.Content {
		switch each := each.(type) {
		case *mcp.TextContent:
			text += each.Text
		case *mcp.ImageContent:
			text += " " + each.MIMEType + " " + http.DetectContentType(each.Data)
		}
	}
	if got.IsError {
		text = "failed: " + text
	}
	return text
}

type args = map[string]any

// TestServe holds what clients get of tools and of the prompt.
func TestServe(t *testing.T) {
	b := &books{}
	c := connect(t, server(t, b, 10))
	listed, err := c.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 2 || listed.Tools[0].Description != "Says it." || b.opened != 0 {
		t.Fatalf("%+v, %v; %d sessions opened for a list", listed, err, b.opened)
	}
	for _, tt := range []struct {
		name string
		args any
		want string
	}{
		{"says", args{"text": "<a>", "n": json.Number("9007199254740993")}, `{"n":9007199254740993,"text":"<a>"}`},
		{"says", args{"text": 7}, `failed: {"error":"invalid arguments for says: text: expected string`},
		{"says", args{}, `failed: {"error":"invalid arguments for says`},
		{"shows", nil, `"seen" image/png image/png`},
		{"nothing", nil, "error: "},
	} {
		if got := call(t, c, tt.name, tt.args); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %v: %s, want %s", tt.name, tt.args, got, tt.want)
		}
	}
	read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: mcpserve.PromptURI})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "Count the lines." {
		t.Errorf("prompt: %+v, %v", read, err)
	}
}

// TestPanic holds that a panic costs its request alone.
func TestPanic(t *testing.T) {
	b := &books{called: func(call episode.ToolCall) error {
		if strings.Contains(call.Result, "boom") {
			panic("boom")
		}
		return nil
	}}
	c := connect(t, server(t, b, 10))
	if got := call(t, c, "says", args{"text": "boom"}); !strings.Contains(got, "failed inside the server") {
		t.Errorf("the request that panics: %s", got)
	}
	if got := call(t, c, "says", args{"text": "on"}); got != `{"text":"on"}` {
		t.Errorf("the one after it: %s", got)
	}
}

// TestEnds holds that sessions end with their clients, and all with the server, also in a call.
func TestEnds(t *testing.T) {
	b := &books{}
	s := server(t, b, 2)
	first, second := connect(t, s), connect(t, s)
	call(t, first, "says", args{"text": "a"})
	call(t, second, "says", args{"text": "b"})
	if got := call(t, connect(t, s), "says", args{"text": "c"}); got != "failed: the server has no room for another session" {
		t.Errorf("the session too many: %s", got)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	wait(t, b, 1)
	if got := call(t, connect(t, s), "says", args{"text": "d"}); got != "failed: the session could not be opened: no sandbox" {
		t.Errorf("the session that cannot be opened: %s", got)
	}
	called := make(chan string)
	go func() { called <- call(t, second, "says", args{"text": "wait"}) }()
	time.Sleep(20 * time.Millisecond) // so that the call has begun; it ends either way
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := <-called; !strings.Contains(got, "the server is closed") && !strings.HasPrefix(got, "error: ") {
		t.Errorf("the call under way: %s", got)
	}
	wait(t, b, 2)
}

// wait waits until as many sessions are closed.
func wait(t *testing.T, b *books, closed int) {
	t.Helper()
	for range 500 {
		b.mu.Lock()
		n := b.closed
		b.mu.Unlock()
		if n == closed {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d sessions are closed, want %d", b.closed, closed)
}

// TestIdle holds that a session over HTTP ends when its client is silent, and that there is room for as many as the server is told.
func TestIdle(t *testing.T) {
	b := &books{}
	s := server(t, b, 1)
	web := httptest.NewServer(s.Handler("secret", 300*time.Millisecond))
	t.Cleanup(web.Close)
	transport := func() *mcp.StreamableClientTransport {
		return &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: token{}}, DisableStandaloneSSE: true}
	}
	c := client(t, transport())
	if got := call(t, c, "says", args{"text": "a"}); got != `{"text":"a"}` {
		t.Errorf("result %s", got)
	}
	_, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport(), nil)
	if err == nil {
		t.Error("there is room for a second session")
	}
	wait(t, b, 1)
	if got := call(t, c, "says", args{"text": "a"}); !strings.HasPrefix(got, "error: ") {
		t.Errorf("after its end: %s", got)
	}
	again := client(t, transport())
	if got := call(t, again, "says", args{"text": "b"}); got != `{"text":"b"}` {
		t.Errorf("the next session: %s", got)
	}
}

type token struct{}

func (token) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return http.DefaultTransport.RoundTrip(r)
}
