package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// fickle is a server that can be taken down, and up again on the same port.
type fickle struct {
	t       *testing.T
	address string
	handler http.HandlerFunc
	server  *httptest.Server
}

const answer = `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`

func answers(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		io.WriteString(w, `{"data":[{"id":"m"}]}`)
		return
	}
	io.WriteString(w, answer)
}

func newFickle(t *testing.T) *fickle {
	f := &fickle{t: t, address: "127.0.0.1:0", handler: answers}
	f.up()
	t.Cleanup(func() { f.server.Close() })
	return f
}

func (f *fickle) up() {
	f.t.Helper()
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.address = listener.Addr().String()
	f.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: f.handler}}
	f.server.Start()
}

func (f *fickle) down() {
	f.server.CloseClientConnections()
	f.server.Close()
}

func (f *fickle) url() string { return "http://" + f.address + "/v1" }

// watch is an observer of outages.
type watch struct {
	mu   sync.Mutex
	news []model.Outage
}

func (w *watch) observe(o model.Outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.news = append(w.news, o)
}

// looked says whether an outage has begun and a look after it found no end.
func (w *watch) looked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.news)
	return n >= 2 && !w.news[n-1].Over && !w.news[n-2].Over
}

// counts is how often an outage began, was looked after, and ended.
func (w *watch) counts() (began, news, over int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := false
	for _, o := range w.news {
		if o.Over {
			over++
		} else if !was {
			began++
		}
		was = !o.Over
	}
	return began, len(w.news), over
}

// patient has the pauses of a run, scaled down from seconds.
func patient(url string, w *watch, limit time.Duration) model.Config {
	return model.Config{
		Settings:  model.Settings{BaseURL: url},
		Patience:  model.Patience{Retries: 4, OutageLimit: limit},
		RetryBase: 4 * time.Millisecond,
		RetryMax:  30 * time.Millisecond,
		Outages:   w.observe,
	}
}

// TestOutage takes the server away in the middle of many calls: all of them end well.
func TestOutage(t *testing.T) {
	for _, callers := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d callers", callers), func(t *testing.T) {
			server, seen := newFickle(t), &watch{}
			client := open(t, patient(server.url(), seen, 0))
			half, gone := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			var wait sync.WaitGroup
			total := int32(callers * 10)
			for n := range callers {
				wait.Go(func() {
					for i := range 10 {
						if calls.Add(1) == total/2 {
							close(half)
						}
						if calls.Load() >= total/2 {
							<-gone
						}
						if _, err := client.Complete(t.Context(), model.Request{Messages: hello, Asker: model.Asker{Episode: fmt.Sprint(n, i)}}); err != nil {
							t.Errorf("call %d of caller %d: %v", i, n, err)
						}
					}
				})
			}
			<-half
			server.down()
			close(gone)
			// A reply that was under way may still end the first of them.
			for !seen.looked() || !client.Paused() {
				time.Sleep(time.Millisecond)
			}
			server.up()
			wait.Wait()
			began, news, over := seen.counts()
			if began != over || began == 0 || news < 3 || client.Paused() {
				t.Errorf("an outage began %d times and ended %d times, with %d news", began, over, news)
			}
			if first := seen.news[0]; !strings.Contains(first.String(), server.address+" does not answer (") || !first.Next.After(first.Since) {
				t.Errorf("the news was %+v", first)
			}
		})
	}
}

// TestOutageLimit stops the run when an outage lasts too long.
func TestOutageLimit(t *testing.T) {
	server := newFickle(t)
	client := open(t, patient(server.url(), &watch{}, 60*time.Millisecond))
	server.down()
	for range 2 { // also those that come later
		_, err := client.Complete(t.Context(), model.Request{Messages: hello})
		e := asError(t, err)
		if !e.Fatal || e.Class != model.ClassConnection || !strings.Contains(e.Message, "connection refused") || !strings.Contains(e.Message, "outage limit") {
			t.Errorf("error = %v, want a fatal one that says which limit", e)
		}
	}
}

// TestCancelInOutage holds that a pause ends at once with its context.
func TestCancelInOutage(t *testing.T) {
	server, seen := newFickle(t), &watch{}
	cfg := patient(server.url(), seen, 0)
	cfg.RetryMax = time.Hour
	client := open(t, cfg)
	server.down()
	reason := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := client.Complete(ctx, model.Request{Messages: hello})
		failed <- err
	}()
	for began := 0; began == 0; began, _, _ = seen.counts() {
		time.Sleep(time.Millisecond)
	}
	cancel(reason)
	if e := asError(t, <-failed); e.Class != model.ClassCancelled || !errors.Is(e, reason) {
		t.Errorf("error = %v, want cancelled because %v", e, reason)
	}
}

// spoil fails at a request in one of the ways of servers.
func spoil(w http.ResponseWriter, kind string) {
	switch kind {
	case "reset":
		panic(http.ErrAbortHandler)
	case "cut":
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n")
	default:
		status, _ := strconv.Atoi(kind)
		w.WriteHeader(status)
	}
}

// TestNoOutage has a server that fails at some conversations for ever: their calls end, those of others go on, and nothing
// is an outage, also where no other conversation is left and where the server fails to list its models.
func TestNoOutage(t *testing.T) {
	classes := map[string]string{
		"500": model.ClassServer, "502": model.ClassServer, "503": model.ClassOverloaded, "504": model.ClassTimeout, "429": model.ClassRateLimit,
		"400": model.ClassBadRequest, "reset": model.ClassConnection, "cut": model.ClassConnection,
	}
	for kind, class := range classes {
		conversations := []string{"bread", "poison", "bread", "poison", "poison", "poison"}
		if kind == "429" { // each makes the gate send less for a while
			conversations = conversations[:2]
		}
		for _, lists := range []bool{true, false} {
			for _, callers := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s/lists=%v/%d callers", kind, lists, callers), func(t *testing.T) {
					t.Parallel()
					seen := &watch{}
					url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
						body, _ := io.ReadAll(r.Body)
						switch {
						case strings.HasSuffix(r.URL.Path, "/models") && !lists:
							w.WriteHeader(http.StatusBadGateway)
						case strings.Contains(string(body), "poison"):
							spoil(w, kind)
						default:
							answers(w, r)
						}
					})
					cfg := patient(url, seen, 0)
					cfg.Retries, cfg.Stream = 3, kind == "cut"
					client := open(t, cfg)
					var wait sync.WaitGroup
					for caller := range callers {
						wait.Go(func() {
							for i, content := range conversations {
								message := episode.Message{Role: "user", Content: content}
								_, err := client.Complete(t.Context(), model.Request{Messages: []episode.Message{message}, Asker: model.Asker{Episode: fmt.Sprint(caller, i)}})
								if content == "bread" {
									if err != nil {
										t.Errorf("%q: error = %v", content, err)
									}
								} else if e := asError(t, err); e.Class != class || e.Fatal || e.Retried > 3 {
									t.Errorf("%q: error = %v (fatal: %v) after %d tries that count, want %s", content, e, e.Fatal, e.Retried, class)
								}
							}
						})
					}
					wait.Wait()
					if began, _, _ := seen.counts(); began != 0 {
						t.Errorf("an outage began: %+v", seen.news)
					}
				})
			}
		}
	}
}

// TestPoisonInOutage has an outage end that a conversation began which the server never answers: what finds out whether it
// is over is none of the conversations.
func TestPoisonInOutage(t *testing.T) {
	var down atomic.Bool
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if down.Load() || strings.Contains(string(body), "poison") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answers(w, r)
	})
	seen := &watch{}
	client := open(t, patient(url, seen, 0))
	down.Store(true)
	failed := make(chan error)
	go func() {
		_, err := client.Complete(t.Context(), model.Request{Messages: []episode.Message{{Role: "user", Content: "poison"}}})
		failed <- err
	}()
	for !seen.looked() {
		time.Sleep(time.Millisecond)
	}
	down.Store(false)
	if e := asError(t, <-failed); e.Class != model.ClassServer || e.Fatal {
		t.Errorf("error = %v (fatal: %v), want %s", e, e.Fatal, model.ClassServer)
	}
	if began, _, over := seen.counts(); began != 1 || over != 1 || client.Paused() {
		t.Errorf("an outage began %d times and ended %d times", began, over)
	}
}

// TestBusyOutage has a server that is there and refuses everybody for a while.
func TestBusyOutage(t *testing.T) {
	for _, status := range []int{429, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var refused atomic.Int32
			url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/chat/completions") && refused.Add(1) <= 9 {
					w.WriteHeader(status)
					return
				}
				answers(w, r)
			})
			seen := &watch{}
			got := reply(t, open(t, patient(url, seen, 0)), model.Request{})
			began, _, over := seen.counts()
			if began != 1 || over != 1 || len(got.Retries) != 5 || got.Retried != 4 {
				t.Errorf("%d outages, %d over; %d retries of which %d count: %+v", began, over, len(got.Retries), got.Retried, got.Retries)
			}
		})
	}
}

// TestEpisodeRetries bounds the retries of all turns of an episode together.
func TestEpisodeRetries(t *testing.T) {
	var asked atomic.Int32
	url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(500)
	})
	client := open(t, model.Config{Settings: model.Settings{BaseURL: url}, Patience: model.Patience{Retries: 4, EpisodeRetries: 6}})
	for _, tt := range []struct{ before, want int }{{0, 4}, {4, 2}, {6, 0}, {9, 0}} {
		_, err := client.Complete(t.Context(), model.Request{Messages: hello, State: model.State{Retried: tt.before}})
		if e := asError(t, err); e.Retried != tt.want {
			t.Errorf("with %d retries before: %d more, want %d", tt.before, e.Retried, tt.want)
		}
	}
}
