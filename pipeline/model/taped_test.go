package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/model/scripted"
)

// outcome is what a rollout sees of a call, but for times.
type outcome struct {
	Reply model.Reply
	Err   *model.Error
}

func ask(t *testing.T, ctx context.Context, m model.Model, req model.Request) outcome {
	t.Helper()
	reply, err := m.Complete(ctx, req)
	reply.Waited = 0
	if err == nil {
		return outcome{Reply: reply}
	}
	e := *asError(t, err)
	e.Waited, e.RetryAfter = 0, 0
	return outcome{Err: &e}
}

// of makes a request that of an episode's first attempt.
func of(id string, req model.Request) model.Request {
	req.Episode, req.Attempt = id, 1
	return req
}

func sameOutcome(t *testing.T, recorded, played outcome) {
	t.Helper()
	if recorded.Err != nil && played.Err != nil && recorded.Err.Fatal && played.Err.Fatal {
		recorded.Err.Message, played.Err.Message = "", "" // they say where the model is, and of which key
	}
	if diff := cmp.Diff(recorded, played, cmpopts.IgnoreUnexported(model.Error{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-recorded +played):\n%s", diff)
	}
}

func recorder(t *testing.T, path string) *record.Tape {
	t.Helper()
	r, err := record.OpenTape(path, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func player(t *testing.T, path string) *record.Replay {
	t.Helper()
	played, err := record.OpenReplay(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { played.Close() })
	return played
}

// TestTapedFaults has every fault happen again without the server, with all its tries and none of its pauses.
func TestTapedFaults(t *testing.T) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "The answer, after all."}}}
	url := play(t, scripted.Config{Policy: scripted.Oracle}, task)
	for _, fault := range []string{"", "429", "500", "504", "stall", "cut", "reset", "garbage", "types", "empty", "error", "400", "413", "filter", "401"} {
		for _, stream := range []bool{false, true} {
			for _, times := range []string{"", ";times=1"} {
				t.Run(fmt.Sprintf("%s%s/stream=%v", fault, times, stream), func(t *testing.T) {
					t.Parallel()
					path := filepath.Join(t.TempDir(), "tape")
					r := recorder(t, path)
					cfg := model.Config{
						Settings:     model.Settings{Name: "scripted", BaseURL: url, Stream: stream},
						Patience:     model.Patience{Retries: 2},
						RetryBase:    time.Millisecond,
						RetryMax:     time.Millisecond,
						TraceHeaders: true,
						Record:       r,
						APIKey:       "sk-very-secret",
					}
					if fault != "" {
						cfg.Headers = map[string]string{"X-Scripted-Fault": fault + times}
					}
					if fault == "stall" {
						cfg.IdleTimeout = 100 * time.Millisecond
					}
					ctx, req := t.Context(), of(t.Name(), model.Request{Messages: hello, Asker: model.Asker{Task: "t"}})
					recorded := ask(t, ctx, open(t, cfg), req)
					if err := r.Close(); err != nil {
						t.Fatal(err)
					}
					cfg.Record, cfg.Replay, cfg.APIKey, cfg.BaseURL = nil, player(t, path), "", "http://tape.invalid/v1"
					cfg.RetryBase, cfg.RetryMax = time.Hour, time.Hour
					client := open(t, cfg)
					if err := client.Probe(t.Context()); err != nil {
						t.Error(err)
					}
					sameOutcome(t, recorded, ask(t, ctx, client, req))
					left := ask(t, ctx, client, req).Err
					if left == nil || left.Class != model.ClassTape || !left.Fatal {
						t.Errorf("after the tape's end: %v", left)
					}
				})
			}
		}
	}
}

// TestTapedTimeout has the client lose its patience, which the tape remembers and the network does not know.
func TestTapedTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	path := filepath.Join(t.TempDir(), "tape")
	r := recorder(t, path)
	cfg := model.Config{Settings: model.Settings{Name: "m", BaseURL: server.URL}, Patience: model.Patience{Timeout: 30 * time.Millisecond}, Record: r}
	recorded := ask(t, t.Context(), open(t, cfg), of("e", model.Request{Messages: hello}))

	// The asker's own time is up first.
	cfg.Timeout = time.Minute
	hurried, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	late := ask(t, hurried, open(t, cfg), of("late", model.Request{Messages: hello}))
	// The run ends: no tape has that.
	ended, stop := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, stop)
	ask(t, ended, open(t, cfg), of("ended", model.Request{Messages: hello}))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	cfg.Record, cfg.Replay, cfg.Timeout = nil, player(t, path), 30*time.Millisecond
	played := open(t, cfg)
	sameOutcome(t, recorded, ask(t, t.Context(), played, of("e", model.Request{Messages: hello})))
	again := ask(t, t.Context(), played, of("late", model.Request{Messages: hello}))
	if again.Err == nil || again.Err.Class != late.Err.Class || !errors.Is(again.Err, context.DeadlineExceeded) {
		t.Errorf("played %v, recorded %v", again.Err, late.Err)
	}
	gone := ask(t, t.Context(), played, of("ended", model.Request{Messages: hello}))
	if gone.Err == nil || !strings.Contains(gone.Err.Message, "episode ended turn 0: the episode is not on the tape") {
		t.Errorf("a call that ended with the run: %v", gone.Err)
	}
}

// TestTapedFallback plays what a second model answered, also where the first one was not even asked.
func TestTapedFallback(t *testing.T) {
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"gone"}}`, http.StatusInternalServerError)
	}))
	defer first.Close()
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "Here I am."}}}
	path := filepath.Join(t.TempDir(), "tape")
	r := recorder(t, path)
	a := model.Config{Settings: model.Settings{Name: "first", BaseURL: first.URL}, Patience: model.Patience{Retries: 1}, RetryBase: time.Millisecond, Record: r}
	b := model.Config{Settings: model.Settings{Name: "second", BaseURL: play(t, scripted.Config{Policy: scripted.Oracle, Model: "second"}, task)}, Record: r}
	req := of("e", model.Request{Messages: hello, Asker: model.Asker{Task: "t"}})
	recorded := ask(t, t.Context(), model.WithFallbacks(open(t, a), open(t, b)), req)
	if recorded.Reply.Fallback != "second" || len(recorded.Reply.Retries) != 2 {
		t.Fatalf("recorded %+v", recorded)
	}
	other := of("other", req) // as if the first one were in an outage
	skipped := ask(t, t.Context(), open(t, b), other)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	a.Record, b.Record, a.Replay = nil, nil, player(t, path)
	b.Replay = a.Replay
	played := model.WithFallbacks(open(t, a), open(t, b))
	sameOutcome(t, recorded, ask(t, t.Context(), played, req))
	if got := ask(t, t.Context(), played, other); got.Reply.Fallback != "second" || got.Reply.Message.Content != skipped.Reply.Message.Content || len(got.Reply.Retries) != 0 {
		t.Errorf("played %+v, want the second model's and nothing of the first", got)
	}
}

// TestNoSecretIsKept has servers that repeat the key and a secret header wherever they can: neither what a rollout sees, the
// log nor the tape has them, and a tape plays the same.
func TestNoSecretIsKept(t *testing.T) {
	const key, header = "sk-1234567890abcdef", "hunter2-hunter2"
	const event = "data: {\"id\":\"SECRET\",\"model\":\"SECRET\",\"choices\":[{\"delta\":%s,\"finish_reason\":%s}]}\n\n"
	tests := []struct {
		name   string
		stream bool
		status int
		body   string // SECRET is what the server was sent
		want   string // of the error's class, or of the reply's content and arguments
	}{
		{"an error", false, 403, `{"error":{"message":"no key SECRET"}}`, model.ClassAuth},
		{"an error in a stream", true, 500, `SECRET`, model.ClassServer},
		{"an error with status 200", false, 200, `{"error":{"message":"no key SECRET","code":"SECRET"}}`, model.ClassServer},
		{"an error event", true, 200, "event: error\ndata: {\"message\":\"SECRET\"}\n\n", model.ClassServer},
		{"no JSON", false, 200, `<html>SECRET</html>`, model.ClassMalformed},
		{"no JSON in a stream", true, 200, "data: {SECRET\n\n", model.ClassMalformed},
		{"a reply", false, 200, `{"id":"SECRET","model":"SECRET","system_fingerprint":"SECRET","choices":[{"message":{"content":"a SECRET b","reasoning_content":"SECRET",` +
			`"tool_calls":[{"id":"SECRET","function":{"name":"f","arguments":"{\"k\":\"SECRET\"}"}}]},"finish_reason":"SECRET"}]}`, `a [secret], [secret] b {"k":"[secret], [secret]"}`},
		{"a reply whose headers have it", false, 200, `{"id":"1","model":"m","choices":[{"message":{"content":"a b"},"finish_reason":"stop"}]}`, "a b "},
		{"a stream", true, 200, fmt.Sprintf(event, `{"content":"a SECRET b"}`, "null") + fmt.Sprintf(event, "{}", `"stop"`) + "data: [DONE]\n\n", "a [secret], [secret] b "},
		{"a stream that cuts", true, 200, fmt.Sprintf(event, `{"content":"a sk-12345"}`, "null") + fmt.Sprintf(event, `{"content":"67890abcdef b"}`, `"stop"`) + "data: [DONE]\n\n", "a [secret] b "},
		{"a stream that cuts a name and details", true, 200,
			fmt.Sprintf(event, `{"reasoning_details":[{"type":"reasoning.text","text":"sk-12345"}],"tool_calls":[{"index":0,"id":"1","function":{"name":"sk-12345","arguments":"{}"}}]}`, "null") +
				fmt.Sprintf(event, `{"reasoning_details":[{"type":"reasoning.text","text":"67890abcdef"}],"tool_calls":[{"index":0,"function":{"name":"67890abcdef"}}]}`, `"length"`) + "data: [DONE]\n\n", " {}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				heard := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ") + ", " + req.Header.Get("X-Own")
				w.Header().Set("Location", heard)
				w.Header().Set("X-Request-Id", heard)
				w.Header().Set("X-Ratelimit-Note", heard)
				w.WriteHeader(tt.status)
				body := strings.ReplaceAll(tt.body, "SECRET", heard)
				for half := range slices.Chunk([]byte(body), len(body)/2+1) { // through a secret, as often as not
					_, _ = w.Write(half)
					w.(http.Flusher).Flush()
				}
			}))
			defer server.Close()
			path := filepath.Join(t.TempDir(), "tape")
			r := recorder(t, path)
			var log bytes.Buffer
			cfg := model.Config{
				Settings: model.Settings{Name: "m", BaseURL: server.URL, Stream: tt.stream, Headers: map[string]string{"X-Own": header}},
				Patience: model.Patience{Retries: 1},
				Record:   r,
				APIKey:   key,
				Secrets:  []string{header},
				Logger:   slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			ctx, req := t.Context(), of("e", model.Request{Messages: hello})
			recorded := ask(t, ctx, open(t, cfg), req)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			got, details := "", ""
			if recorded.Err != nil {
				got = recorded.Err.Class
			} else {
				details = string(recorded.Reply.Message.ReasoningDetails)
				got = recorded.Reply.Message.Content + " "
				for _, call := range recorded.Reply.Message.Calls {
					got += call.Arguments
				}
				if !slices.Contains(recorded.Reply.Repairs, "masked secret") {
					t.Errorf("repairs %q do not say so", recorded.Reply.Repairs)
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			x, err := player(t, path).Next(record.Asker{Episode: "e", Attempt: 1}, 0, record.Request{
				Fields: []byte(map[bool]string{false: `{"model":"m","stream":false}`, true: `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`}[tt.stream]), Messages: []byte(`[{"role":"user","content":"Hello"}]`),
			})
			if err != nil {
				t.Fatal(err)
			}
			all := fmt.Sprintf("%+v %s %+v %s %v %s", recorded.Reply, details, recorded.Err, log.String(), x, x.Body)
			for _, secret := range []string{key, header} {
				if strings.Contains(all, secret) {
					t.Errorf("%q is kept: %s", secret, all)
				}
			}
			if !strings.HasPrefix(tt.name, "a stream that cuts") { // of which only the reply shows a secret
				cfg.Record, cfg.Replay, cfg.APIKey, cfg.Headers, cfg.Secrets = nil, player(t, path), "", nil, nil
				sameOutcome(t, recorded, ask(t, ctx, open(t, cfg), req))
			}
		})
	}
}

// TestTapeFull stops the run when the tape cannot be written any more.
func TestTapeFull(t *testing.T) {
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: strings.Repeat("long ", 100)}}}
	path := filepath.Join(t.TempDir(), "tape")
	r := recorder(t, path)
	client := open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: play(t, scripted.Config{Policy: scripted.Oracle}, task)}, Record: r})
	if err := r.Close(); err != nil { // as the disk does, this makes every write fail
		t.Fatal(err)
	}
	var failed *model.Error
	for i := 0; i < 10000 && failed == nil; i++ {
		failed = ask(t, t.Context(), client, of(fmt.Sprint(i), model.Request{Messages: hello})).Err
		if err := r.Sync(); err == nil {
			t.Fatal("a closed tape was synced")
		}
	}
	if failed == nil || failed.Class != model.ClassTape || !failed.Fatal {
		t.Errorf("error %v, want the tape's, which ends the run", failed)
	}
}
