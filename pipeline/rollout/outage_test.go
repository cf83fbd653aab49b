package rollout_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
)

// TestOutageTakesNoTime holds that an episode waits for longer than it may last, where its model does not answer, and
// that its row says so.
func TestOutageTakesNoTime(t *testing.T) {
	const allowed = 150 * time.Millisecond
	var asked atomic.Int32
	var began atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			began.Store(time.Now().UnixNano())
		}
		if time.Since(time.Unix(0, began.Load())) < 2*allowed {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"model":"m","choices":[{"message":{"content":"done"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(server.Close)
	client, err := model.Open(model.Config{
		Settings:  model.Settings{Name: "m", BaseURL: server.URL + "/v1"},
		Patience:  model.Patience{Retries: 2},
		RetryBase: 10 * time.Millisecond,
		RetryMax:  80 * time.Millisecond,
		Outages:   func(model.Outage) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ep, err := playWith(t, steps(), episode.Task{Prompt: []episode.Message{{Role: "user", Content: "p"}}}, nil, func(p *rollout.Player) {
		p.Model, p.Limits.Time = client, allowed
	})
	if err != nil || ep.Outcome != episode.Success || len(ep.Turns) != 1 {
		t.Fatalf("episode: %s, fault %+v, %v", ep.Outcome, ep.Fault, err)
	}
	turn := ep.Turns[0]
	if turn.Waited < allowed || turn.Waited > turn.Elapsed || len(turn.Retries) < 3 {
		t.Errorf("of %v the turn waited %v, with %d retries; want most of it and some", turn.Elapsed, turn.Waited, len(turn.Retries))
	}
	var pauses time.Duration
	for _, retry := range turn.Retries {
		pauses += retry.Pause
		if retry.Class != model.ClassOverloaded {
			t.Errorf("retry %+v, want class overloaded", retry)
		}
	}
	if pauses < allowed {
		t.Errorf("the pauses come to %v", pauses)
	}
}
