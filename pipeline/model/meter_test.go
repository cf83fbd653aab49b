package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// bounds is a meter that pays for everything and keeps what it was asked.
type bounds struct {
	asked   []model.Bound
	settled []episode.Usage
}

func (b *bounds) Reserve(_ context.Context, worst model.Bound) (model.Receipt, error) {
	b.asked = append(b.asked, worst)
	return b, nil
}
func (b *bounds) Settle(_ string, u episode.Usage) { b.settled = append(b.settled, u) }
func (b *bounds) Void()                            {}

// TestReplyWithoutEnd holds that a reply beyond every measure is an error of its own, which is paid once.
func TestReplyWithoutEnd(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var asked atomic.Int32
		url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			begin, chunk := `{"choices":[{"message":{"content":"`, strings.Repeat("a", 1<<20)
			if stream {
				begin, chunk = "", `data: {"choices":[{"delta":{"content":"`+strings.Repeat("a", 1<<20)+`"}}]}`+"\n\n"
			}
			io.WriteString(w, begin)
			for range 70 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		})
		meter := &bounds{}
		_, err := open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: stream, MaxTokens: 9}, Patience: model.Patience{Retries: 3}, Meter: meter}).Complete(t.Context(), model.Request{Messages: hello})
		e := asError(t, err)
		if e.Class != model.ClassReplyTooLarge || e.Fatal || asked.Load() != 1 || !strings.Contains(e.Message, "64 MiB") {
			t.Errorf("stream %v: error = %v after %d requests, want %s after one", stream, e, asked.Load(), model.ClassReplyTooLarge)
		}
		if len(meter.asked) != 1 || len(meter.settled) != 1 || meter.settled[0].Reported {
			t.Errorf("stream %v: asked %+v and settled %+v, want the worst case once", stream, meter.asked, meter.settled)
		}
	}
}

// TestBoundOfFirstRequests holds that tools that the server has counted once are not reckoned by their bytes again.
func TestBoundOfFirstRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}],"usage":{"prompt_tokens":6000,"completion_tokens":1}}`)
	}))
	defer server.Close()
	meter := &bounds{}
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: server.URL, ExtraBody: map[string]any{"max_tokens": 300}}, Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tool := json.RawMessage(`{"type":"function","function":{"name":"a","description":"` + strings.Repeat("word ", 4000) + `"}}`)
	other := json.RawMessage(strings.Replace(string(tool), `"a"`, `"b"`, 1))
	system := episode.Message{Role: "system", Content: strings.Repeat("Be good. ", 200)}
	ask := func(tool json.RawMessage, system episode.Message, words string) model.Bound {
		t.Helper()
		req := model.Request{Tools: []json.RawMessage{tool}, Messages: []episode.Message{system, {Role: "user", Content: words}}}
		if _, err := client.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return meter.asked[len(meter.asked)-1]
	}
	if got := ask(tool, system, "one"); got.Prompt < 40_000 || got.Completion != 300 || got.Model != "m" {
		t.Errorf("bound = %+v of 40000 bytes and replies of 300 tokens", got)
	}
	if got := ask(tool, system, "another"); got.Prompt < 6007 || got.Prompt > 6500 {
		t.Errorf("bound = %+v, want 6000 tokens and a few bytes", got)
	}
	if got := ask(other, system, "another"); got.Prompt < 40_000 {
		t.Errorf("bound = %+v with a tool that was not counted yet", got)
	}
	system.Content += "!"
	if got := ask(tool, system, "another"); got.Prompt < 40_000 {
		t.Errorf("bound = %+v with a system message that was not counted yet", got)
	}
}

// TestCounter holds that counts are the server's as far as it has counted, and by its ratio beyond.
func TestCounter(t *testing.T) {
	message := func(n int) episode.Message { return episode.Message{Role: "user", Content: strings.Repeat("x", n)} }
	var c model.Counter
	conversation := []episode.Message{message(4000)}
	if got := c.Count(conversation, nil); got < 900 || got > 1100 {
		t.Errorf("estimate = %d of 4000 bytes, want about 1000", got)
	}
	c.Learn(conversation, nil, 2000) // two bytes a token
	conversation = append(conversation, message(1000))
	if got := c.Count(conversation, nil); got < 2480 || got > 2540 {
		t.Errorf("count = %d, want 2000 and about 500", got)
	}
	c.Forget()
	if got := c.Count(conversation[1:], nil); got < 480 || got > 540 {
		t.Errorf("count = %d of 1000 bytes, want about 500", got)
	}
	c.Learn(nil, nil, 0)
	if got := c.Known(); got.Tokens != 0 {
		t.Errorf("known = %+v", got)
	}
}

// TestWindow holds that each server's word for the window is understood, and nonsense is not.
func TestWindow(t *testing.T) {
	tests := []struct {
		give string
		want int
	}{
		{`{"id":"m","max_model_len":4096}`, 4096},
		{`{"id":"m","context_length":8192,"top_provider":{"context_length":6000}}`, 6000},
		{`{"id":"m","meta":{"n_ctx":2048,"n_ctx_train":131072}}`, 2048},
		{`{"id":"m","context_window":32768}`, 32768},
		{`{"id":"m","max_context_length":32768,"loaded_context_length":4096}`, 4096},
		{`{"id":"m"}`, 0},
		{`{"id":"m","max_model_len":"big","meta":[1],"top_provider":null,"context_length":-5,"context_window":1e300}`, 0},
		{`{"id":"other","max_model_len":4096},{"id":"m"}`, 0},
	}
	for _, tt := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"data":[%s]}`, tt.give) }))
		client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: server.URL}})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.give, err)
		}
		if got := client.Window(); got != tt.want {
			t.Errorf("%s: window = %d, want %d", tt.give, got, tt.want)
		}
		client.Close()
		server.Close()
	}
}
