package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// TestInterruptInOutage holds that the first interrupt ends a run that is paused, at once: what is in play would not
// finish.
func TestInterruptInOutage(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
			return
		}
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
	}))
	t.Cleanup(proxy.Close)
	dir := filepath.Join(t.TempDir(), "run")
	dataset := write(t, "d.jsonl", `{"id":"a","prompt":"p","verify":{"exact":"x"},"gold":"x"}`)
	cmd := exec.Command(build(t), "run", "--dataset", dataset, "--model", "m", "--base-url", proxy.URL+"/v1", "--request-retries", "0", "--out", dir)
	var said said
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(said.String(), "paused: "); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("the run was not paused: %s", said.String())
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(said.String(), "--resume") {
		t.Errorf("exit code %d (%v), want %d: %s", code, err, exitInterrupted, said.String())
	}
	if all := episodes(t, dir); len(all) != 0 {
		t.Errorf("%d episodes are journaled", len(all))
	}
}

// said collects what a command says while it runs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestPause refuses everything in the middle of a run: it pauses, says so, goes on, and no episode is lost or scored
// for it. A second model takes the place of the first where there is one.
func TestPause(t *testing.T) {
	var tasks strings.Builder
	for i := range 60 {
		fmt.Fprintf(&tasks, `{"id":"t%d","prompt":"p","verify":{"exact":"x"},"gold":"x"}`+"\n", i)
	}
	dataset := write(t, "d.jsonl", tasks.String())
	for _, name := range []string{"alone", "with a fallback"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			var requests, until atomic.Int64
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 20 {
					until.Store(time.Now().Add(300 * time.Millisecond).UnixNano())
				}
				if time.Now().UnixNano() < until.Load() && strings.HasSuffix(r.URL.Path, "/chat/completions") {
					http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
					return
				}
				server.Handler().ServeHTTP(w, r)
			}))
			t.Cleanup(proxy.Close)
			spare := endpoint(t, scripted.Config{Model: "spare"})
			dir := filepath.Join(t.TempDir(), "run")
			args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", proxy.URL + "/v1", "--workers", "16",
				"--request-retries", "0", "--episode-retries", "0", "--max-errors-in-row", "1", "--out", dir}
			if name != "alone" {
				args = append(args, "-f", write(t, "run.yaml", "model: {fallbacks: [{model: spare, base_url: "+spare+"}]}\n"))
			}
			got := succeed(t, args...)
			if !strings.Contains(got.errOut, "paused: ") || name == "alone" && !strings.Contains(got.errOut, "the run goes on: ") {
				t.Errorf("the progress says nothing of a pause and its end: %s", got.errOut)
			}
			all := episodes(t, dir)
			fallen := 0
			for _, ep := range all {
				if ep.Outcome != episode.Failure || ep.Attempt != 1 {
					t.Errorf("%s: %s, attempt %d, %+v", ep.Key.Task, ep.Outcome, ep.Attempt, ep.Fault)
				}
				for _, turn := range ep.Turns {
					if turn.Fallback == "spare" && turn.Model == "spare" {
						fallen++
					}
				}
			}
			if (fallen > 0) != (name != "alone") {
				t.Errorf("%d turns were played by the fallback", fallen)
			}
		})
	}
}

// TestPoison has a server that fails at the conversations of some tasks for ever: they are errors, the run plays all others
// and pauses for none of it, and neither do resumes, which have no other conversations left.
func TestPoison(t *testing.T) {
	var tasks strings.Builder
	for i := range 12 {
		prompt := "bread"
		if i%4 == 3 {
			prompt = "poison"
		}
		fmt.Fprintf(&tasks, `{"id":"t%d","prompt":"%s %d","verify":{"exact":"x"},"gold":"x"}`+"\n", i, prompt, i)
	}
	dataset := write(t, "d.jsonl", tasks.String())
	for kind, class := range map[string]string{"500": "server", "503": "overloaded", "reset": "connection", "cut": "connection"} {
		for _, workers := range []string{"1", "8"} {
			t.Run(kind+"/"+workers, func(t *testing.T) {
				t.Parallel()
				server, err := scripted.New(scripted.Config{Policy: "noop", Model: "m"})
				if err != nil {
					t.Fatal(err)
				}
				proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
					switch {
					case !bytes.Contains(body, []byte("poison")):
						server.Handler().ServeHTTP(w, r)
					case kind == "reset":
						panic(http.ErrAbortHandler)
					case kind == "cut":
						_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n")
					default:
						status, _ := strconv.Atoi(kind)
						http.Error(w, `{"error":{"message":"cannot do that"}}`, status)
					}
				}))
				t.Cleanup(proxy.Close)
				dir := filepath.Join(t.TempDir(), "run")
				args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", proxy.URL + "/v1", "--workers", workers, "--samples", "2",
					"--stream=" + strconv.FormatBool(kind == "cut"), "--request-retries", "0", "--episode-retries", "0", "--max-errors-in-row", "4", "--out", dir}
				for attempt := 1; attempt <= 2; attempt++ {
					got := trajgen(t, args...)
					if got.code != exitErrors || strings.Contains(got.errOut, "paused: ") {
						t.Fatalf("exit code %d, want %d and no pause: %s", got.code, exitErrors, got.errOut)
					}
					all := episodes(t, dir)
					for _, ep := range all {
						bad := ep.Outcome != episode.Failure
						if strings.Contains(ep.Messages[0].Content+ep.Messages[len(ep.Messages)-1].Content, "poison") {
							bad = ep.Outcome != episode.ModelError || ep.Reward != nil || ep.Fault.Class != class || ep.Attempt != attempt
						}
						if bad {
							t.Errorf("%s: %s, attempt %d, %+v", ep.Key.Task, ep.Outcome, ep.Attempt, ep.Fault)
						}
					}
					if len(all) != 24 {
						t.Errorf("%d episodes, want all 24", len(all))
					}
					args = append(args, "--resume", "--retry-errors")
				}
			})
		}
	}
}
