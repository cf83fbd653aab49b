package model_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/model"
)

// named is an endpoint that says who it is, or what is wrong with it.
func named(t *testing.T, name string, status *atomic.Int32, asked *atomic.Int32) string {
	return endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			answers(w, r)
			return
		}
		asked.Add(1)
		if code := int(status.Load()); code != 0 {
			w.WriteHeader(code)
			if code == 400 {
				io.WriteString(w, `{"error":{"message":"filtered","code":"content_filter"}}`)
			}
			return
		}
		io.WriteString(w, `{"model":"`+name+`","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	})
}

// TestFallbacks has a first model that fails in several ways, and a second one.
func TestFallbacks(t *testing.T) {
	tests := []struct {
		name          string
		first, second int32 // statuses
		from          string
		wantModel     string // that answers
		wantFallback  string
		wantClass     string // when none does
		wantRetries   int
	}{
		{"all is well", 0, 0, "", "one", "", "", 0},
		{"the first is out of order", 500, 0, "", "two", "second", "", 3},
		{"the first is limited", 429, 0, "", "two", "second", "", 3},
		{"the first will not say that", 400, 0, "", "two", "second", "", 1},
		{"an episode stays with the second", 0, 0, "second", "two", "second", "", 0},
		{"and comes back when that fails", 0, 503, "second", "one", "", "", 3},
		{"both are out of order", 500, 502, "", "", "", model.ClassServer, 5},
		{"a wrong key is not a reason", 401, 0, "", "", "", model.ClassAuth, 0},
		{"a request that is wrong is wrong everywhere", 422, 0, "", "", "", model.ClassBadRequest, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var status [2]atomic.Int32
			var asked [2]atomic.Int32
			status[0].Store(tt.first)
			status[1].Store(tt.second)
			first := open(t, model.Config{Settings: model.Settings{Name: "first", BaseURL: named(t, "one", &status[0], &asked[0])}, Patience: model.Patience{Retries: 2}})
			second := open(t, model.Config{Settings: model.Settings{Name: "second", BaseURL: named(t, "two", &status[1], &asked[1])}, Patience: model.Patience{Retries: 2}})
			got, err := model.WithFallbacks(first, second).Complete(t.Context(), model.Request{Messages: hello, State: model.State{Fallback: tt.from}})
			if tt.wantClass != "" {
				if e := asError(t, err); e.Class != tt.wantClass || len(e.Retries) != tt.wantRetries {
					t.Errorf("error = %v with %d retries, want %s and %d", e, len(e.Retries), tt.wantClass, tt.wantRetries)
				}
				return
			}
			if err != nil || got.Model != tt.wantModel || got.Fallback != tt.wantFallback || len(got.Retries) != tt.wantRetries {
				t.Errorf("%s answered as fallback %q after %+v (%v), want %s as %q after %d",
					got.Model, got.Fallback, got.Retries, err, tt.wantModel, tt.wantFallback, tt.wantRetries)
			}
		})
	}
}

// pair is two models in the order of asking, whose servers answer with the statuses.
func pair(t *testing.T, limit time.Duration) (clients [2]*model.Client, status, asked *[2]atomic.Int32, seen *watch) {
	status, asked, seen = new([2]atomic.Int32), new([2]atomic.Int32), new(watch)
	for i, name := range []string{"one", "two"} {
		cfg := patient(named(t, name, &status[i], &asked[i]), seen, limit)
		cfg.Name, cfg.Retries, cfg.RetryMax = name, 1, 10*time.Millisecond
		clients[i] = open(t, cfg)
	}
	return clients, status, asked, seen
}

// TestFallbackInOutage asks the second model at once while the first one is out, and waits when both are.
func TestFallbackInOutage(t *testing.T) {
	clients, status, asked, seen := pair(t, 0)
	both := model.WithFallbacks(clients[0], clients[1])
	status[0].Store(503)
	for i := range 20 {
		out := clients[0].Paused()
		before := asked[0].Load()
		_, told, _ := seen.counts()
		got, err := both.Complete(t.Context(), model.Request{Messages: hello, Asker: model.Asker{Episode: string(rune('a' + i))}})
		if err != nil || got.Model != "two" {
			t.Fatalf("%s answered, %v", got.Model, err)
		}
		// In its outage it is asked to find out whether that is over, and what was found is told.
		_, news, _ := seen.counts()
		if n := int(asked[0].Load() - before); out && n != news-told {
			t.Errorf("the first was asked %d times in its outage, and %d times to find out whether it is over", n, news-told)
		}
	}
	if !clients[0].Paused() || both.Paused() {
		t.Errorf("first paused: %v, both: %v; want the first alone", clients[0].Paused(), both.Paused())
	}

	status[1].Store(503)
	back := time.AfterFunc(50*time.Millisecond, func() { status[0].Store(0) })
	defer back.Stop()
	if got, err := both.Complete(t.Context(), model.Request{Messages: hello}); err != nil || got.Model != "one" {
		t.Errorf("%s answered, %v; want the one that came back", got.Model, err)
	}
}

// TestFallbackOutageLimit stops the run when an outage of both lasts too long.
func TestFallbackOutageLimit(t *testing.T) {
	clients, status, _, _ := pair(t, 50*time.Millisecond)
	both := model.WithFallbacks(clients[0], clients[1])
	status[0].Store(503)
	status[1].Store(503)
	for fatal, i := false, 0; !fatal; i++ { // before the errors are an outage they end their calls
		_, err := both.Complete(t.Context(), model.Request{Messages: hello, Asker: model.Asker{Episode: string(rune('a' + i%26))}})
		failed := asError(t, err)
		if failed.Class != model.ClassOverloaded {
			t.Fatalf("error = %v, want %s", failed, model.ClassOverloaded)
		}
		if fatal = failed.Fatal; fatal && !strings.Contains(failed.Message, "outage limit") {
			t.Errorf("error = %v, want one that says which limit", failed)
		}
	}
}

// TestRefusedInOutage asks a model once that will not answer one conversation while the other one is out: it is paid for
// each time, and other conversations go on with it, so nothing is fatal.
func TestRefusedInOutage(t *testing.T) {
	clients, status, asked, _ := pair(t, 200*time.Millisecond)
	both := model.WithFallbacks(clients[0], clients[1])
	status[0].Store(503)
	for i := range 10 {
		if _, err := both.Complete(t.Context(), model.Request{Messages: hello, Asker: model.Asker{Episode: string(rune('a' + i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if !clients[0].Paused() {
		t.Fatal("the first is not in an outage")
	}
	status[1].Store(400)
	before := asked[1].Load()
	_, err := both.Complete(t.Context(), model.Request{Messages: hello})
	failed := asError(t, err)
	if failed.Fatal || failed.Class != model.ClassContentPolicy {
		t.Errorf("error = %v (fatal: %v), want the refusal, which ends this call alone", failed, failed.Fatal)
	}
	if n := asked[1].Load() - before; n != 1 {
		t.Errorf("the second was asked %d times, want once", n)
	}
	for _, fault := range failed.Retries {
		if fault.Class == model.ClassContentPolicy {
			t.Errorf("the error is among its own retries: %+v", failed.Retries)
		}
	}
}
