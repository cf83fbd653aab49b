package scripted_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/model/scripted"
)

// TestFaultsUnderLoad draws the same faults for the same requests whatever else refuses some of their askings.
func TestFaultsUnderLoad(t *testing.T) {
	refused := func(w *httptest.ResponseRecorder) bool {
		body := w.Body.String()
		return strings.Contains(body, "rate_limit_exceeded") || strings.Contains(body, "service_unavailable")
	}
	play := func(t *testing.T, cfg scripted.Config) (met [][]string, refusals int) {
		cfg.Policy, cfg.Seed, cfg.FaultRate, cfg.Faults = scripted.Noop, 5, 0.5, []string{"500", "filter"}
		server := newServer(t, cfg)
		for episode := range 40 {
			var faults []string
			for {
				w := post(t, server, "/v1/chat/completions", short, "X-Trajgen-Episode", fmt.Sprint(episode))
				if refused(w) {
					if refusals++; refusals > 5000 {
						t.Fatalf("nothing is let in any more: %s", w.Body)
					}
					time.Sleep(2 * time.Second)
					continue
				}
				if w.Code == 200 && !strings.Contains(w.Body.String(), "content_filter") {
					break
				}
				faults = append(faults, fmt.Sprint(w.Code))
			}
			met = append(met, faults)
		}
		return met, refusals
	}
	synctest.Test(t, func(t *testing.T) {
		want, _ := play(t, scripted.Config{})
		need := ask(t, newServer(t, scripted.Config{Policy: scripted.Noop}), short).Usage
		var outages []string
		for s := range 400 { // half of every second, so that some begin while a request waits
			from := time.Duration(s)*time.Second + 500*time.Millisecond
			outages = append(outages, fmt.Sprintf("%v-%v", from, from+500*time.Millisecond))
		}
		for name, cfg := range map[string]scripted.Config{
			"request rate": {RequestRate: 0.7},
			"token rate":   {TokenRate: 2 * (need.Prompt + need.Completion)},
			"outages":      {Outages: outages, Delay: "300ms"},
		} {
			got, refusals := play(t, cfg)
			if diff := cmp.Diff(want, got); diff != "" || refusals < 10 {
				t.Errorf("%s: with %d refusals the episodes met other faults (-without +with):\n%s", name, refusals, diff)
			}
		}
	})
}

// TestFaultMetByLeaving counts a fault for a client that does not wait for its end, so that its retry succeeds.
func TestFaultMetByLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, scripted.Config{Policy: scripted.Noop})
		request := func() *http.Request {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(`{"model":"scripted","messages":[{"role":"user","content":"x"}]}`))
			r.Header.Set("X-Scripted-Fault", "slow;delay=1h;times=1")
			return r
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		server.Handler().ServeHTTP(httptest.NewRecorder(), request().WithContext(ctx))
		began := time.Now()
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, request())
		if took := time.Since(began); w.Code != 200 || took > 0 {
			t.Errorf("the retry took %v and gave %d, want 200 at once", took, w.Code)
		}
	})
}
