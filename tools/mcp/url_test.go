package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"trajgen/pipeline/episode"
	"trajgen/tools/mcp"
)

// remote is a server at a URL, and what requests to it had.
type remote struct {
	*httptest.Server
	calls  atomic.Int64 // of its tool count
	deny   atomic.Int64 // status of all further answers
	busy   atomic.Int64 // answers that say try again
	header atomic.Value // of the last request
}

// serve serves tools over HTTP, by the library's own server.
func serve(t *testing.T, handler func(func(*http.Request) *sdk.Server) http.Handler) *remote {
	t.Helper()
	r := &remote{}
	server := sdk.NewServer(&sdk.Implementation{Name: "remote", Version: "3"}, nil)
	add := func(name string, do func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		server.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}, do)
	}
	text := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	add("count", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(r.calls.Add(1))), nil
	})
	add("big", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 5<<20)), nil
	})
	add("fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such row"}}}, nil
	})
	add("ask", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if answer, ok := req.Params.InputResponses["size"]; ok {
			got, _ := json.Marshal(answer)
			return text(req.Params.RequestState + " " + string(got)), nil
		}
		return &sdk.CallToolResult{RequestState: "opaque-" + string(req.Params.Arguments), InputRequests: sdk.InputRequestMap{"size": &sdk.ElicitParams{
			Message: "Which size?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "string"}}},
		}}}, nil
	})
	inner := handler(func(*http.Request) *sdk.Server { return server })
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.header.Store(req.Header.Clone())
		if status := r.deny.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		if r.busy.Load() > 0 {
			r.busy.Add(-1)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(r.CloseClientConnections)
	t.Cleanup(r.Server.Close)
	return r
}

func streamable(stateless bool) func(func(*http.Request) *sdk.Server) http.Handler {
	return func(get func(*http.Request) *sdk.Server) http.Handler {
		return sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: stateless})
	}
}

// TestURL holds that servers elsewhere answer over each transport, with the header whose value is in a variable.
func TestURL(t *testing.T) {
	for name, handler := range map[string]func(func(*http.Request) *sdk.Server) http.Handler{
		"http": streamable(false), "stateless": streamable(true),
		"sse": func(get func(*http.Request) *sdk.Server) http.Handler { return sdk.NewSSEHandler(get, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, handler)
			server := mcp.Server{URL: r.URL, HeaderEnv: map[string]string{"X-Api-Key": "GIVEN_KEY"}, Timeout: 30 * time.Second}
			if name == "sse" {
				server.Transport = "sse"
			}
			set := open(t, nil, one(server))
			p := begin(t, nil, set)
			r.busy.Store(2)
			for _, tt := range []struct{ tool, status, class, result string }{
				{"count", "ok", "", `{"result":"1"}`}, {"fails", "error", "tool_error", "no such row"}, {"big", "error", "result_too_large", "ask for less"},
				{"count", "ok", "", `{"result":"2"}`},
			} {
				got := p.call("mcp_fake_"+tt.tool, `{}`)
				if string(got.Status) != tt.status || got.ErrorClass != tt.class || !strings.Contains(got.Result, tt.result) {
					t.Errorf("%s: %s %s %.300s, want %v", tt.tool, got.Status, got.ErrorClass, got.Result, tt)
				}
			}
			if got := r.header.Load().(http.Header).Get("X-Api-Key"); got != "hunter2-GIVEN_KEY" {
				t.Errorf("the header is %q", got)
			}
			if fault := p.session.Fault(); fault != nil {
				t.Errorf("fault %+v", fault)
			}
		})
	}
}

// TestInputRequired holds that what a server of the newest protocol wants to know comes back in the same call, with the server's state
// unread: of two calls at once, each has its own.
func TestInputRequired(t *testing.T) {
	r := serve(t, streamable(true))
	server := mcp.Server{URL: r.URL, Elicitation: &mcp.Elicitation{Answers: []mcp.Answer{{Match: "size", Content: map[string]any{"size": "L"}}}}}
	p := begin(t, nil, open(t, nil, one(server)))
	results := make(chan [2]string)
	for i := range 2 {
		go func() {
			got := p.session.Call(t.Context(), request(fmt.Sprintf("call_%d", i), "mcp_fake_ask", fmt.Sprintf(`{"n":%d}`, i)))
			results <- [2]string{fmt.Sprintf(`opaque-{\"n\":%d}`, i), string(got.Status) + got.Result + string(got.Source)}
		}()
	}
	for range 2 {
		if got := <-results; !strings.HasPrefix(got[1], `ok{"result":"`+got[0]) || !strings.Contains(got[1], `\"size\":\"L\"`) || strings.Count(got[1], `"action":"accept"`) != 1 {
			t.Errorf("%s: %s", got[0], got[1])
		}
	}
}

// TestDenied holds that a server which refuses the run's credentials stops the run.
func TestDenied(t *testing.T) {
	r := serve(t, streamable(false))
	p := begin(t, nil, open(t, nil, one(mcp.Server{URL: r.URL})))
	var halts interface{ Halt() bool }
	p.attempt.Ask = func(_, _ string, _ any, ask func() error) error {
		err := ask()
		if !errors.As(err, &halts) {
			t.Errorf("the record is told %v", err)
		}
		return err
	}
	r.deny.Store(http.StatusForbidden)
	got := p.call("mcp_fake_count", `{}`)
	if got.Status != episode.CallUnavailable || got.ErrorClass != "mcp_denied" || !strings.Contains(got.Result, "403") || p.session.Fault() == nil {
		t.Errorf("%s %s %s, fault %v", got.Status, got.ErrorClass, got.Result, p.session.Fault())
	}
	if _, err := mcp.Open(t.Context(), one(mcp.Server{URL: r.URL}), options(nil)); err == nil || !strings.Contains(err.Error(), "status 403") {
		t.Errorf("open: %v", err)
	}
}

// TestRecord holds that a server outside of the sandbox is never asked twice: an attempt that goes on after its runner has died takes the
// answers from its record, and so do failures.
func TestRecord(t *testing.T) {
	r := serve(t, streamable(false))
	set := open(t, nil, one(mcp.Server{URL: r.URL}))
	kept := map[string]json.RawMessage{}
	ask := func(role, question string, answer any, ask func() error) error {
		if text, ok := kept[role+question]; ok {
			return json.Unmarshal(text, answer)
		}
		err := ask()
		if err == nil {
			kept[role+question], err = json.Marshal(answer)
		}
		return err
	}
	var first []string
	for range 2 {
		p := begin(t, nil, set)
		p.attempt.Ask = ask
		var all []string
		for _, tool := range []string{"count", "fails"} {
			got := p.call("mcp_fake_"+tool, `{"a":1}`)
			all = append(all, string(got.Status), got.ErrorClass, got.Result, string(got.Source))
		}
		if first == nil {
			first = all
		} else if strings.Join(all, " ") != strings.Join(first, " ") {
			t.Errorf("first %q, then %q", first, all)
		}
	}
	if r.calls.Load() != 1 {
		t.Errorf("asked %d times", r.calls.Load())
	}
}

// TestBreaker holds that a server which is down costs the first episodes their patience, and the others none.
func TestBreaker(t *testing.T) {
	r := serve(t, streamable(false))
	set := open(t, nil, one(mcp.Server{URL: r.URL}))
	r.CloseClientConnections()
	r.Server.Close()
	for i := range 4 {
		p := begin(t, nil, set)
		got := p.call("mcp_fake_count", `{}`)
		alone := strings.Contains(got.Result, "left alone")
		if got.ErrorClass != "mcp_down" || alone != (i == 3) || p.session.Fault() == nil || p.session.Fault().Outcome != episode.ToolError {
			t.Errorf("episode %d: %s %s, fault %+v", i, got.ErrorClass, got.Result, p.session.Fault())
		}
	}
}

// TestOAuth holds that client credentials become a token, once for all connections, and that neither is told.
func TestOAuth(t *testing.T) {
	var tokens atomic.Int64
	mux := http.NewServeMux()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		server := sdk.NewServer(&sdk.Implementation{Name: "safe", Version: "1"}, nil)
		server.AddTool(&sdk.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
		return server
	}, nil)
	here := httptest.NewServer(mux)
	t.Cleanup(here.Close)
	t.Cleanup(here.CloseClientConnections)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer token-1" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+here.URL+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, req)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, here.URL+"/mcp", here.URL)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],`+
			`"token_endpoint_auth_methods_supported":["client_secret_post"]}`, here.URL, here.URL+"/authorize", here.URL+"/token")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if req.FormValue("client_id") != "hunter2-GIVEN_ID" || req.FormValue("client_secret") != "hunter2-GIVEN_SECRET" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, tokens.Add(1))
	})
	server := mcp.Server{URL: here.URL + "/mcp", OAuth: &mcp.OAuth{ClientIDEnv: "GIVEN_ID", ClientSecretEnv: "GIVEN_SECRET"}}
	set := open(t, nil, one(server))
	for range 2 {
		if got := begin(t, nil, set).call("mcp_fake_count", `{}`); got.Status != episode.CallOK {
			t.Errorf("%s %s", got.Status, got.Result)
		}
	}
	if tokens.Load() != 1 {
		t.Errorf("%d tokens", tokens.Load())
	}
	server.OAuth = &mcp.OAuth{ClientIDEnv: "GIVEN_OTHER", ClientSecretEnv: "GIVEN_SECRET"}
	if _, err := mcp.Open(t.Context(), one(server), options(nil)); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("wrong credentials: %v", err)
	}
	server.OAuth.ClientIDEnv = "NOT_THERE"
	if _, err := mcp.Open(t.Context(), one(server), options(nil)); err == nil || !strings.Contains(err.Error(), "the environment has no NOT_THERE") {
		t.Errorf("no credentials: %v", err)
	}
}

// TestRedirect holds that a server cannot send the run's secrets to another host, nor the runner to its own network.
func TestRedirect(t *testing.T) {
	got := atomic.Int64{}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(other.Close)
	for _, target := range []string{other.URL, "http://169.254.169.254/latest", strings.Replace(other.URL, "127.0.0.1", "localhost", 1)} {
		here := httptest.NewServer(http.RedirectHandler(target, http.StatusTemporaryRedirect))
		_, err := mcp.Open(t.Context(), one(mcp.Server{URL: here.URL, HeaderEnv: map[string]string{"X-Api-Key": "GIVEN_KEY"}}), options(nil))
		here.Close()
		if err == nil || got.Load() > 0 {
			t.Errorf("%s: error %v, %d requests", target, err, got.Load())
		}
	}
}

// TestSecretsStay holds that a server which repeats the secret that it got does not bring it into an error.
func TestSecretsStay(t *testing.T) {
	for _, status := range []int{400, 404, 500} {
		here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			http.Error(w, "I was given "+req.Header.Get("X-Api-Key"), status)
		}))
		server := mcp.Server{URL: here.URL, HeaderEnv: map[string]string{"X-Api-Key": "GIVEN_KEY"}}
		_, err := mcp.Open(t.Context(), one(server), options(nil))
		here.Close()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

// TestShared holds that a shared server runs once, in a sandbox of its own, and that the row says so.
func TestShared(t *testing.T) {
	b := backend(t, "local")
	server := faulty("plain")
	for _, shared := range []bool{false, true} {
		server.Shared = shared
		set := open(t, b, one(server))
		var results []string
		for range 2 {
			p := begin(t, b, set)
			got := p.call("mcp_fake_count", `{}`)
			results = append(results, got.Result)
			if p.attempt.Servers[0].Shared != shared || strings.Contains(string(got.Source), `"shared":true`) != shared || (got.SandboxTime > 0) == shared {
				t.Errorf("row %+v, source %s, in the sandbox for %s", p.attempt.Servers[0], got.Source, got.SandboxTime)
			}
			p.session.Close()
		}
		want := map[bool]string{false: `{"result":"1"} {"result":"1"}`, true: `{"result":"1"} {"result":"2"}`}[shared]
		if strings.Join(results, " ") != want {
			t.Errorf("shared %v: %q, want %s", shared, results, want)
		}
	}
}

// TestPauses holds that waits before tries to connect are the episode's own, and the same whenever it is played.
func TestPauses(t *testing.T) {
	all := map[time.Duration]bool{}
	for sample := range 20 {
		key := episode.Key{Seed: 1, Task: "a", Sample: sample}
		got := mcp.Pauses(key)
		if again := mcp.Pauses(key); !slices.Equal(got, again) {
			t.Errorf("sample %d waits %v, and then %v", sample, got, again)
		}
		// In HurryUp's units of 10ms: none at first, then about 1 and 2; about a half before the first try to connect again.
		for i, usual := range []time.Duration{0, 10, 20, 5, 10, 20} {
			usual *= time.Millisecond
			if got[i] < usual/2 || got[i] > usual*3/2 {
				t.Errorf("sample %d: pause %d is %s, want about %s", sample, i, got[i], usual)
			}
		}
		all[got[3]] = true
	}
	if len(all) < 15 {
		t.Errorf("20 episodes come back to a server after %d different waits", len(all))
	}
}
