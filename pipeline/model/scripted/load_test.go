package scripted_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/model/scripted"
)

var short = map[string]any{"model": "scripted", "messages": []any{map[string]any{"role": "user", "content": "x"}}}

// crowd asks n times at once and gives the answers in the order of asking, with the time that each took.
func crowd(t *testing.T, server *scripted.Server, n int) ([]*httptest.ResponseRecorder, []time.Duration) {
	answers, times := make([]*httptest.ResponseRecorder, n), make([]time.Duration, n)
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			answers[i] = post(t, server, "/v1/chat/completions", short)
			times[i] = time.Since(began)
		})
		synctest.Wait() // so that they come in order
	}
	all.Wait()
	return answers, times
}

func TestRequestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, scripted.Config{Policy: scripted.Noop, RequestRate: 20, RequestBurst: 5})
		answers, _ := crowd(t, server, 8)
		for i, w := range answers {
			want, header := 200, map[string]string{"X-Ratelimit-Limit-Requests": "5"}
			switch {
			case i < 5:
				header["X-Ratelimit-Remaining-Requests"] = string(rune('4' - i))
				header["X-Ratelimit-Reset-Requests"] = (time.Duration(i+1) * 50 * time.Millisecond).String()
			default:
				want = 429
				header["X-Ratelimit-Remaining-Requests"], header["X-Ratelimit-Reset-Requests"] = "0", "250ms"
				header["Retry-After"], header["Retry-After-Ms"] = "1", "50"
			}
			if w.Code != want || want == 429 && !strings.Contains(w.Body.String(), `"code":"rate_limit_exceeded"`) {
				t.Errorf("request %d: %d %s, want %d", i, w.Code, w.Body, want)
			}
			for name, value := range header {
				if got := w.Header().Get(name); got != value {
					t.Errorf("request %d: header %s %q, want %q", i, name, got, value)
				}
			}
		}
		// One that comes when it was told to is let in, again and again: a hundred in five seconds.
		for i := range 100 {
			time.Sleep(50 * time.Millisecond)
			if w := post(t, server, "/v1/chat/completions", short); w.Code != 200 {
				t.Fatalf("request %d at the rate: %d", i, w.Code)
			}
		}
		got := server.Stats()
		if got.Requests != 108 || got.Refused != 3 || got.Status[200] != 105 || got.Status[429] != 3 || got.InFlight != 0 || got.Peak != 1 || got.Seconds != 5 {
			t.Errorf("stats = %+v", got)
		}
	})
}

func TestTokenRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		need := ask(t, newServer(t, scripted.Config{Policy: scripted.Noop}), short).Usage
		total := need.Prompt + need.Completion
		server := newServer(t, scripted.Config{Policy: scripted.Noop, TokenRate: 2 * total})
		answers, _ := crowd(t, server, 3)
		w := answers[2]
		if answers[1].Code != 200 || w.Code != 429 || !strings.Contains(w.Body.String(), `"type":"tokens"`) || w.Header().Get("X-Ratelimit-Reset-Tokens") != "1m0s" ||
			w.Header().Get("X-Ratelimit-Remaining-Tokens") != "0" || w.Header().Get("Retry-After") != "30" {
			t.Errorf("%d, then %d %s %v", answers[1].Code, w.Code, w.Body, w.Header())
		}
		time.Sleep(30 * time.Second)
		if w := post(t, server, "/v1/chat/completions", short); w.Code != 200 {
			t.Errorf("after its time: %d %s", w.Code, w.Body)
		}
		small := newServer(t, scripted.Config{Policy: scripted.Noop, TokenRate: total - 1})
		if w := post(t, small, "/v1/chat/completions", short); w.Code != 429 || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "too large") {
			t.Errorf("a request that never fits: %d %s", w.Code, w.Body)
		}
	})
}

// TestLoad: what is beyond the limit is refused, what is beyond the slots waits its turn.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, scripted.Config{Policy: scripted.Noop, Delay: "1s", Slots: 2, MaxInFlight: 6})
		answers, times := crowd(t, server, 8)
		for i, w := range answers {
			status, took := 200, time.Duration(i/2+1)*time.Second
			if i >= 6 {
				status, took = 503, 0
			}
			if w.Code != status || times[i] != took {
				t.Errorf("request %d: %d after %v, want %d after %v", i, w.Code, times[i], status, took)
			}
		}
		if got := server.Stats(); got.Peak != 7 || got.Refused != 2 {
			t.Errorf("stats = %+v", got)
		}
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, scripted.Config{Policy: scripted.Noop, Delay: "1s", Outages: []string{"10s-20s", "30s-31s;refuse"}})
		time.Sleep(time.Hour) // an outage counts from the first request
		began := time.Now()
		at := func(second float64, want int) {
			time.Sleep(time.Until(began.Add(time.Duration(second * float64(time.Second)))))
			status := 0
			func() {
				defer func() { // as net/http does it
					if r := recover(); r != nil && r != http.ErrAbortHandler {
						panic(r)
					}
				}()
				status = post(t, server, "/v1/chat/completions", short).Code
			}()
			if status != want {
				t.Errorf("after %v s: status %d, want %d", second, status, want)
			}
		}
		at(0, 200)
		at(8.5, 200)
		at(9.5, 503) // it began while this one waited
		at(15, 503)
		health := httptest.NewRecorder()
		server.Handler().ServeHTTP(health, httptest.NewRequest("GET", "/health", nil))
		if health.Code != 503 {
			t.Errorf("health is %d in an outage", health.Code)
		}
		at(20, 200)
		at(30.5, 0)
		at(31, 200)
		stats := httptest.NewRecorder()
		server.Handler().ServeHTTP(stats, httptest.NewRequest("GET", "/stats", nil))
		var got scripted.Stats
		if err := json.Unmarshal(stats.Body.Bytes(), &got); err != nil || got.Requests != 7 || got.Refused != 3 || got.Status[0] != 1 || got.Status[503] != 2 {
			t.Errorf("stats = %s, %v", stats.Body, err)
		}
	})
}

// TestLatency: each request has its own, the same whenever it comes, and together they have the distribution.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			spec        string
			median, max time.Duration
		}{{"2s", 2 * time.Second, 2 * time.Second}, {"1s-3s", 2 * time.Second, 3 * time.Second}, {"lognormal:2s,0.5", 2 * time.Second, 200 * time.Second}} {
			server := newServer(t, scripted.Config{Policy: scripted.Noop, Delay: tt.spec})
			took := func(episode int) time.Duration {
				began := time.Now()
				post(t, server, "/v1/chat/completions", short, "X-Trajgen-Episode", string(rune('a'+episode)))
				return time.Since(began)
			}
			below, top := 0, time.Duration(0)
			for i := range 400 {
				d := took(i)
				top = max(top, d)
				if d <= tt.median {
					below++
				}
				if i == 0 && took(0) != d {
					t.Errorf("%s: the same request takes another time", tt.spec)
				}
			}
			if tt.spec != "2s" && math.Abs(float64(below)-200) > 50 || top > tt.max || top < tt.median {
				t.Errorf("%s: %d of 400 at most %v, the longest %v", tt.spec, below, tt.median, top)
			}
		}
		server := newServer(t, scripted.Config{Policy: scripted.Noop, Speed: 10})
		for _, stream := range []bool{false, true} {
			began := time.Now()
			body := map[string]any{"model": "scripted", "messages": short["messages"], "stream": stream}
			post(t, server, "/v1/chat/completions", body)
			if took := time.Since(began); took != 2500*time.Millisecond { // 24 bytes and the end
				t.Errorf("25 tokens at ten a second, streamed %v: %v", stream, took)
			}
		}
	})
}

func TestTimingSpecs(t *testing.T) {
	for _, spec := range []string{"x", "-1s", "3s-1s", "lognormal:2s", "lognormal:0s,1", "lognormal:2s,9", "lognormal:2s,NaN"} {
		if _, err := scripted.New(scripted.Config{Policy: scripted.Noop, Delay: spec}); err == nil {
			t.Errorf("latency %q is accepted", spec)
		}
	}
	for _, spec := range []string{"", "1s", "2s-1s", "1s-2s;refus", "1s-1s"} {
		if _, err := scripted.New(scripted.Config{Policy: scripted.Noop, Outages: []string{spec}}); err == nil {
			t.Errorf("outage %q is accepted", spec)
		}
	}
	newServer(t, scripted.Config{Policy: scripted.Noop, Delay: "1s - 3s", Outages: []string{"30s-1m30s;refuse"}})
}
