package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// TestToolLists sends lists that begin and end with the same schemas, each often and all at once.
func TestToolLists(t *testing.T) {
	tool := func(name string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"function", "function":{"name":%q,"description":"<%s>"}}`, name, strings.Repeat(name, 3000)))
	}
	first, last := tool("first"), tool("last")
	lists := [][]json.RawMessage{{first, tool("one"), last}, {first, tool("two"), last}, {first, last}, {first}, nil}
	var mu sync.Mutex
	got := map[string][]byte{}
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("read %d of %d bytes: %v", len(body), r.ContentLength, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.Header.Get("X-Trajgen-Episode")] = body
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`)
	})
	client := open(t, model.Config{Settings: model.Settings{BaseURL: url}, TraceHeaders: true})
	var wg sync.WaitGroup
	for i := range 4 * len(lists) {
		wg.Go(func() {
			_, err := client.Complete(t.Context(), model.Request{
				Messages: []episode.Message{{Role: "user", Content: "Go on."}}, Tools: lists[i%len(lists)], Asker: model.Asker{Episode: fmt.Sprint(i)},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 4 * len(lists) {
		var body struct{ Tools json.RawMessage }
		if err := json.Unmarshal(got[fmt.Sprint(i)], &body); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		var want []string
		for _, tool := range lists[i%len(lists)] {
			want = append(want, string(tool))
		}
		if got, want := string(body.Tools), "["+strings.Join(want, ",")+"]"; got != want && (got != "" || len(lists[i%len(lists)]) > 0) {
			t.Errorf("request %d sent tools %.200s, want %.200s", i, got, want)
		}
	}
}

// TestToolByName asks for a tool in the requests that offer it, the first and later.
func TestToolByName(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	client := open(t, model.Config{Settings: model.Settings{ToolChoice: "look", BaseURL: endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
		io.WriteString(w, answer)
	})}})
	look, write := json.RawMessage(`{"function":{"name":"look"}}`), json.RawMessage(`{"function":{"name":"write"}}`)
	nameless := json.RawMessage(`{"function":7}`)
	for i, tools := range [][]json.RawMessage{{write, look}, {write, look}, {write}, {nameless, look}, {nameless}} {
		if _, err := client.Complete(t.Context(), model.Request{Messages: hello, Tools: tools}); err != nil {
			t.Fatal(err)
		}
		want := string(tools[len(tools)-1]) == string(look)
		if got := strings.Contains(bodies[i], `"tool_choice"`); got != want {
			t.Errorf("request %d: a tool was asked for: %v, want %v: %s", i, got, want, bodies[i])
		}
	}
}

func TestBadToolSchemas(t *testing.T) {
	client := open(t, model.Config{Settings: model.Settings{BaseURL: endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })}})
	good := json.RawMessage(`{"type":"function"}`)
	for _, tools := range [][]json.RawMessage{{nil}, {good, nil}, {good, json.RawMessage(`{`), good}, {json.RawMessage(`{`)}} {
		_, err := client.Complete(t.Context(), model.Request{Messages: []episode.Message{{Role: "user", Content: "Go on."}}, Tools: tools})
		if err == nil || !strings.Contains(err.Error(), "is not JSON") {
			t.Errorf("Complete with tools %s = %v, want a complaint about the schema", tools, err)
		}
	}
}
