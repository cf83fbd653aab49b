package model_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/model"
)

// TestEndpoints plays two servers of one model: an episode stays where its last turn was, and leaves when that breaks.
func TestEndpoints(t *testing.T) {
	var asked [2]atomic.Int32
	var broken atomic.Int32 // index of the broken server, from 1
	urls := make([]string, 2)
	for i := range urls {
		urls[i] = endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			if int(broken.Load()) == i+1 {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
		})
	}
	client := open(t, model.Config{Settings: model.Settings{Endpoints: urls}, Patience: model.Patience{Retries: 5}})
	for i := range 20 {
		id := fmt.Sprint("episode", i)
		first := reply(t, client, model.Request{Asker: model.Asker{Episode: id}})
		next := reply(t, client, model.Request{Asker: model.Asker{Episode: id}, State: model.State{Turn: 1, Endpoint: first.Endpoint}})
		if first.Endpoint == "" || next.Endpoint != first.Endpoint {
			t.Errorf("%s was at %q and then at %q, want the same", id, first.Endpoint, next.Endpoint)
		}
	}
	if a, b := asked[0].Load(), asked[1].Load(); a < 8 || b < 8 {
		t.Errorf("the servers had %d and %d of 40 requests, want a good part each", a, b)
	}
	broken.Store(1)
	gone := strings.TrimSuffix(strings.TrimPrefix(urls[0], "http://"), "/v1")
	got := reply(t, client, model.Request{Asker: model.Asker{Episode: "e"}, State: model.State{Turn: 1, Endpoint: gone}})
	if got.Endpoint == gone || len(got.Retries) == 0 {
		t.Errorf("reply = %+v, want one of the other server after tries", got)
	}
}

// TestOneEndpoint leaves out what there is no choice of.
func TestOneEndpoint(t *testing.T) {
	url := says(t, 200, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	for _, settings := range []model.Settings{{BaseURL: url}, {Endpoints: []string{url + "/"}}} {
		if got := reply(t, open(t, model.Config{Settings: settings}), model.Request{}); got.Endpoint != "" {
			t.Errorf("endpoint = %q, want none", got.Endpoint)
		}
	}
	_, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: url, Endpoints: []string{url, "ftp://x", "http://k:secret@x/v1", url}}, Patience: model.Patience{MinInFlight: 3, MaxInFlight: 2}})
	for _, want := range []string{"both a base URL and endpoints", `"ftp://x"`, "of x carries a user", "given twice", "from 3 to 2"} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
}

// stopwatch is a clock that counts how often it stood still.
type stopwatch struct{ stops, starts int }

func (s *stopwatch) Stop()  { s.stops++ }
func (s *stopwatch) Start() { s.starts++ }
func (s *stopwatch) Back()  {}

// TestInFlight has more callers than the server may be sent at once.
func TestInFlight(t *testing.T) {
	var now, most atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
		io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	client := open(t, model.Config{Settings: model.Settings{BaseURL: server.URL}, Patience: model.Patience{MaxInFlight: 3}})
	failed := make(chan error, 30)
	for range cap(failed) {
		go func() {
			var clock stopwatch
			_, err := client.Complete(t.Context(), model.Request{Messages: hello, Clock: &clock})
			if err == nil && (clock.stops != 1 || clock.starts != 1) {
				err = fmt.Errorf("the clock was stopped %d times and started %d times, want once", clock.stops, clock.starts)
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d requests were in flight at once, want at most 3", most.Load())
	}
}
