package model_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

// TestFaults has the scripted server misbehave once or for ever, streamed and not.
func TestFaults(t *testing.T) {
	tests := []struct {
		fault   string
		class   string
		retried bool
	}{
		{"429", model.ClassRateLimit, true},
		{"503", model.ClassOverloaded, true},
		{"529", model.ClassOverloaded, true},
		{"500", model.ClassServer, true},
		{"502", model.ClassServer, true},
		{"504", model.ClassTimeout, true},
		{"408", model.ClassTimeout, true},
		{"stall", model.ClassStalled, true},
		{"reset", model.ClassConnection, true},
		{"garbage", model.ClassMalformed, true},
		{"empty", model.ClassMalformed, true},
		{"error", model.ClassServer, true},
		{"cut", "", true}, // the class depends on where the cut can be seen
		{"401", model.ClassAuth, false},
		{"403", model.ClassAuth, false},
		{"402", model.ClassQuota, false},
		{"404", model.ClassModelNotFound, false},
		{"413", model.ClassRequestTooLarge, false},
		{"400", model.ClassBadRequest, false},
		{"422", model.ClassBadRequest, false},
	}
	task := &episode.Task{ID: "t", Prompt: hello, Gold: []episode.Step{{Content: "The answer, after all."}}}
	url := play(t, scripted.Config{Policy: scripted.Oracle}, task)
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", tt.fault, stream), func(t *testing.T) {
				t.Parallel()
				idle := time.Minute
				if tt.fault == "stall" {
					idle = 300 * time.Millisecond
				}
				client := func(fault string) *model.Client {
					return open(t, model.Config{
						Settings:     model.Settings{Name: "scripted", BaseURL: url, Stream: stream, Headers: map[string]string{"X-Scripted-Fault": fault}},
						Patience:     model.Patience{Retries: 2, IdleTimeout: idle},
						TraceHeaders: true, // the server counts a request's askings by episode
					})
				}
				want := tt.class
				if tt.fault == "cut" {
					want = map[bool]string{false: model.ClassMalformed, true: model.ClassConnection}[stream]
				}
				_, err := client(tt.fault).Complete(t.Context(), model.Request{Messages: hello})
				e := asError(t, err)
				wantTries := map[bool]int{true: 2}[tt.retried]
				if e.Class != want || len(e.Retries) != wantTries {
					t.Fatalf("error = %v with %d retries, want class %s and %d", e, len(e.Retries), want, wantTries)
				}
				wantFatal := e.Class == model.ClassAuth || e.Class == model.ClassQuota || e.Class == model.ClassModelNotFound
				if e.Fatal != wantFatal {
					t.Errorf("Fatal = %v, want %v", e.Fatal, wantFatal)
				}
				if f := e.Fault(); f.Outcome != episode.ModelError || f.Class != want || f.Message == "" {
					t.Errorf("Fault() = %+v", f)
				}
				if !tt.retried {
					return
				}
				got := reply(t, client(tt.fault+";times=2"), model.Request{Asker: model.Asker{Episode: t.Name()}})
				if got.Message.Content != "The answer, after all." || len(got.Retries) != 2 || got.Retries[0].Class != want {
					t.Errorf("reply = %+v, want the answer after two retries of class %s", got, want)
				}
			})
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name   string
		header http.Header
		want   time.Duration // at least; much more only where the machine is slow
	}{
		{"seconds", http.Header{"Retry-After": {"0.2"}}, 200 * time.Millisecond},
		{"milliseconds win", http.Header{"Retry-After": {"60"}, "Retry-After-Ms": {"150"}}, 150 * time.Millisecond},
		{"date by the server's clock", http.Header{
			"Retry-After": {"Tue, 01 Jan 2019 00:00:01 GMT"}, "Date": {"Tue, 01 Jan 2019 00:00:00 GMT"},
		}, time.Second},
		{"date in the past", http.Header{"Retry-After": {now.Add(-time.Hour).UTC().Format(http.TimeFormat)}}, 0},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, 0},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", tt.name, stream), func(t *testing.T) {
				t.Parallel()
				var tries atomic.Int32
				url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
					if tries.Add(1) == 1 {
						for name, values := range tt.header {
							w.Header()[name] = values
						}
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
				})
				start := time.Now()
				reply(t, open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: stream}, Patience: model.Patience{Retries: 1}}), model.Request{})
				if took := time.Since(start); took < tt.want || took > tt.want+20*time.Second {
					t.Errorf("took %v, want about %v", took, tt.want)
				}
			})
		}
	}
}

// TestCancelWhileWaiting ends the context in a pause, in a silent stream, and before anything began.
func TestCancelWhileWaiting(t *testing.T) {
	reason := errors.New("the run is over")
	for _, fault := range []string{"429;retry-after=100000", "stall", "slow;delay=1h"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", fault, stream), func(t *testing.T) {
				url := play(t, scripted.Config{Policy: scripted.Noop})
				client := open(t, model.Config{
					Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: stream, Headers: map[string]string{"X-Scripted-Fault": fault}},
					Patience: model.Patience{Retries: 5},
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
				defer stop.Stop()
				start := time.Now()
				_, err := client.Complete(ctx, model.Request{Messages: hello})
				if e := asError(t, err); e.Class != model.ClassCancelled || !errors.Is(err, reason) || e.Fatal {
					t.Errorf("error = %v, want cancelled because %v", err, reason)
				}
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("took %v to notice", took)
				}
				if _, err := client.Complete(ctx, model.Request{Messages: hello}); !errors.Is(err, reason) {
					t.Errorf("error of an ended context = %v, want %v", err, reason)
				}
			})
		}
	}
}

func TestTimeouts(t *testing.T) {
	tests := []struct {
		name   string
		server scripted.Config
		client model.Config
		class  string
		want   string
	}{
		{"whole request", scripted.Config{Delay: "1h"}, model.Config{Patience: model.Patience{Timeout: 50 * time.Millisecond}}, model.ClassTimeout, "no complete reply within the timeout (50ms)"},
		{"silence before a stream", scripted.Config{Delay: "1h"}, model.Config{Settings: model.Settings{Stream: true}, Patience: model.Patience{IdleTimeout: 50 * time.Millisecond}}, model.ClassStalled, "sent nothing for the idle timeout (50ms)"},
		{"slow stream beyond the whole", scripted.Config{Speed: 100}, model.Config{Settings: model.Settings{Stream: true}, Patience: model.Patience{Timeout: 60 * time.Millisecond, IdleTimeout: time.Hour}}, model.ClassTimeout, "no complete reply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.server.Policy = scripted.Noop
			tt.client.Name, tt.client.BaseURL = "scripted", play(t, tt.server)
			_, err := open(t, tt.client).Complete(t.Context(), model.Request{Messages: hello})
			if e := asError(t, err); e.Class != tt.class || !strings.Contains(e.Message, tt.want) {
				t.Errorf("error = %v, want %s with %q", err, tt.class, tt.want)
			}
		})
	}
	t.Run("a slow stream that goes on is not a stall", func(t *testing.T) {
		url := play(t, scripted.Config{Policy: scripted.Noop, Speed: 40})
		got := reply(t, open(t, model.Config{Settings: model.Settings{Name: "scripted", BaseURL: url, Stream: true}, Patience: model.Patience{IdleTimeout: 500 * time.Millisecond}}), model.Request{})
		if got.Message.Content != "I cannot help with that." {
			t.Errorf("content = %q", got.Message.Content)
		}
	})
}

func TestEndpointDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + "/v1"
	listener.Close()
	for _, stream := range []bool{false, true} {
		_, err := open(t, model.Config{Settings: model.Settings{BaseURL: url, Stream: stream}, Patience: model.Patience{Retries: 1}}).Complete(t.Context(), model.Request{Messages: hello})
		if e := asError(t, err); e.Class != model.ClassConnection || !errors.Is(err, syscall.ECONNREFUSED) || len(e.Retries) != 1 {
			t.Errorf("error = %v, want a refused connection after two tries", err)
		}
	}
}

// TestSecretsStayInside has a server that says the key back in every way it can.
func TestSecretsStayInside(t *testing.T) {
	const key, token = "sk-very/secret+key\"1", "second-secret-2"
	for _, status := range []int{200, 302, 400, 401, 404, 429, 500} {
		for _, stream := range []bool{false, true} {
			url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
				heard := r.Header.Get("Authorization") + " " + r.Header.Get("X-Other")
				w.Header().Set("X-Request-Id", heard)
				w.Header().Set("Location", "http://elsewhere/?key="+heard)
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"error":{"message":%q,"type":%q,"code":%q}}`, "your key is "+heard, heard, heard)
			})
			var log bytes.Buffer
			client := open(t, model.Config{
				Settings: model.Settings{BaseURL: url, Headers: map[string]string{"X-Other": "Token " + token}, Stream: stream},
				Patience: model.Patience{Retries: 1},
				APIKey:   key,
				Secrets:  []string{"Token " + token},
				Logger:   slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			_, err := client.Complete(t.Context(), model.Request{Messages: hello})
			e := asError(t, err)
			told := fmt.Sprintf("%v %+v %v %s", err, *e, client.Probe(t.Context()), log.String())
			for _, secret := range []string{key, "very/secret", token, base64.StdEncoding.EncodeToString([]byte(key))} {
				if strings.Contains(told, secret) {
					t.Errorf("status %d, stream %v: %q is told in %s", status, stream, secret, told)
				}
			}
		}
	}
}
