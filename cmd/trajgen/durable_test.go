package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/model/scripted"
)

// turnstile stands in front of the scripted model. It answers so many requests and holds the others back.
type turnstile struct {
	server *scripted.Server

	mu       sync.Mutex
	changed  *sync.Cond
	left     int // requests that are still answered; -1 is all
	held     int
	answered map[[32]byte]int // by request
	poison   string           // requests with it fail
	open     chan struct{}    // closed when those that are held may go
}

func openTurnstile(t *testing.T, dataset string) (*turnstile, string) {
	t.Helper()
	server, err := scripted.New(scripted.Config{Policy: "oracle", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if err := teach(t.Context(), server, dataset, ""); err != nil {
		t.Fatal(err)
	}
	s := &turnstile{server: server, left: -1, answered: map[[32]byte]int{}, open: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	at := httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.open)
		at.Close()
	})
	return s, at.URL + "/v1"
}

func (s *turnstile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.server.Handler().ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	if s.left == 0 {
		s.held++
		s.changed.Broadcast()
		s.mu.Unlock()
		select {
		case <-s.open:
		case <-r.Context().Done():
		}
		return
	}
	if s.poison != "" && bytes.Contains(body, []byte(s.poison)) {
		s.left--
		s.mu.Unlock()
		http.Error(w, `{"error":{"message":"cannot do that"}}`, http.StatusInternalServerError)
		return
	}
	s.left--
	s.answered[sha256.Sum256(body)]++
	s.mu.Unlock()
	s.server.Handler().ServeHTTP(w, r)
}

// let answers so many requests from here on, and counts them anew.
func (s *turnstile) let(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.held = n, 0
}

// full waits until so many requests are held.
func (s *turnstile) full(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held < n {
		s.changed.Wait()
	}
}

// quiet waits until no more is answered, as all that is asked is held, or until the asker has ended.
func (s *turnstile) quiet(ended <-chan struct{}) {
	seen := func() (int, int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.left, s.held
	}
	for {
		left, held := seen()
		select {
		case <-ended:
			return
		case <-time.After(150 * time.Millisecond):
		}
		if l, h := seen(); l == 0 && l == left && h == held && h > 0 {
			return
		}
	}
}

// forgive counts what was answered since then as not answered: whether the asker has kept it is not known.
func (s *turnstile) forgive(since map[[32]byte]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.answered, func(request [32]byte, _ int) bool { return since[request] == 0 })
}

// known are the requests that were answered so far.
func (s *turnstile) known() map[[32]byte]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.answered)
}

// forget counts anew. It says how many requests were answered, and how many of them more than once.
func (s *turnstile) forget() (all, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.answered {
		if all += n; n > 1 {
			twice++
		}
	}
	s.answered = map[[32]byte]int{}
	return all, twice
}

// longTasks are tasks of so many turns with a command each, the last of which says what the others left.
func longTasks(t *testing.T, tasks, turns int, command string) string {
	t.Helper()
	var rows strings.Builder
	for i := range tasks {
		var gold []string
		for turn := range turns {
			arguments, _ := json.Marshal(map[string]string{"command": fmt.Sprintf(command, turn)})
			gold = append(gold, fmt.Sprintf(`{"tool_calls":[{"name":"terminal","arguments":%s}]}`, arguments))
		}
		fmt.Fprintf(&rows, `{"id":"t%d","prompt":"Write lines, task %d.","gold":[%s,{"content":"done"}],"verify":{"command":"test $(wc -l < a) = %d"}}`+"\n",
			i, i, strings.Join(gold, ","), turns)
	}
	return write(t, "long.jsonl", rows.String())
}

// unmarked are whole rows without times and without the mark of a resume.
func unmarked(t *testing.T, dir string) (rows []string, marked int) {
	t.Helper()
	for _, ep := range episodes(t, dir) {
		if len(ep.Resumed) > 0 {
			marked++
		}
	}
	for _, row := range timeless(t, dir) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(row), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "resumed")
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(data))
	}
	return rows, marked
}

// killed starts a run, and kills it when all its workers wait for a reply.
func killed(t *testing.T, s *turnstile, answers, workers int, args ...string) {
	t.Helper()
	s.let(answers)
	cmd := exec.Command(build(t), args...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.full(workers)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s.let(-1)
}

// TestKilledInTheMiddle kills a run with kill -9 in the middle of its episodes, twice. What goes on asks nothing
// again that was answered, and has the rows of a run that was not interrupted. So does the tape that was recorded.
func TestKilledInTheMiddle(t *testing.T) {
	for _, workers := range []int{1, 16} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			tasks, turns := workers+2, 4
			dataset := longTasks(t, tasks, turns, "echo %d >> a; cat a")
			s, url := openTurnstile(t, dataset)
			dir := t.TempDir()
			args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", fmt.Sprint(workers), "--min-in-flight", fmt.Sprint(workers), "--quiet", "--toolsets", "terminal",
				"--sandbox", "local", "--command-policy", "record"}
			whole, run, taped := filepath.Join(dir, "whole"), filepath.Join(dir, "run"), filepath.Join(dir, "tape")
			succeed(t, append(args, "--out", whole)...)
			all, _ := s.forget()
			if _, err := os.Stat(filepath.Join(whole, "turns")); err == nil {
				t.Error("turns are recorded though nobody asked for it")
			}
			durable := append(args, "--out", run, "--durable-turns", "--record", taped)
			killed(t, s, all/4, workers, durable...)
			killed(t, s, all/4, workers, append(durable, "--resume")...)
			succeed(t, append(durable, "--resume")...)
			if n, twice := s.forget(); n != all || twice > 0 {
				t.Errorf("%d requests were answered, %d of them twice; want %d and none", n, twice, all)
			}
			want, _ := unmarked(t, whole)
			got, marked := unmarked(t, run)
			sameRows(t, want, got)
			if marked < workers {
				t.Errorf("%d episodes say that they were resumed, want %d at least", marked, workers)
			}
			if info, err := os.Stat(filepath.Join(run, "turns")); err != nil {
				t.Error(err)
			} else if info.Size() > 0 {
				t.Errorf("%d bytes of turns are left of what is finished", info.Size())
			}
			// The tape has each exchange once, whichever process made it.
			again := filepath.Join(dir, "again")
			succeed(t, append(args, "--out", again, "--replay", taped)...)
			got, _ = unmarked(t, again)
			sameRows(t, want, got)
		})
	}
}

// TestRecordOfAnotherWorld resumes what was killed where tools say something else by now, where the record was cut and
// where a bit of it was flipped: what cannot go on starts anew and says why, and the rest goes on.
func TestRecordOfAnotherWorld(t *testing.T) {
	const turnsEach = 4
	start := func(t *testing.T, command string, more ...string) (s *turnstile, run string, args []string) {
		dataset := longTasks(t, 2, turnsEach, command)
		s, url := openTurnstile(t, dataset)
		run = filepath.Join(t.TempDir(), "run")
		args = []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "2", "--min-in-flight", "2", "--quiet", "--toolsets", "terminal",
			"--sandbox", "local", "--command-policy", "record", "--durable-turns", "--out", run, "--episode-retries", "0"}
		args = append(args, more...)
		killed(t, s, 6, 2, args...)
		return s, run, append(args, "--resume")
	}
	logged := func(t *testing.T, run string) string {
		data, err := os.ReadFile(filepath.Join(run, "log.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	t.Run("another result", func(t *testing.T) {
		t.Parallel()
		s, run, args := start(t, "echo %d >> a; date +%%N")
		succeed(t, args...)
		turnsBefore := 0
		for _, ep := range episodes(t, run) {
			if ep.Outcome != episode.Success || ep.Attempt != 2 || len(ep.Earlier) != 1 || len(ep.Resumed) > 0 {
				t.Fatalf("%s, attempt %d, earlier %+v", ep.Outcome, ep.Attempt, ep.Earlier)
			}
			was := ep.Earlier[0]
			turnsBefore += was.Turns
			if was.Outcome != episode.Cancelled || was.Fault.Class != "resume_differs" || was.Differed == nil || was.Differed.Turn != 0 || was.Differed.Name != "terminal" || was.Usage.Prompt == 0 {
				t.Errorf("earlier %+v, differed %+v", was, was.Differed)
			}
			if log := logged(t, run); !strings.Contains(log, "starts anew") || !strings.Contains(log, ep.ID) {
				t.Errorf("the log does not name %s", ep.ID)
			}
		}
		if all, _ := s.forget(); turnsBefore != 6 || all != 6+2*(turnsEach+1) {
			t.Errorf("%d turns were paid for before, and %d requests answered", turnsBefore, all)
		}
	})
	t.Run("a torn end", func(t *testing.T) {
		t.Parallel()
		s, run, args := start(t, "echo %d >> a")
		path := filepath.Join(run, record.TurnsName)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, data[:50]...), 0o644); err != nil {
			t.Fatal(err)
		}
		succeed(t, args...)
		if all, twice := s.forget(); all != 2*(turnsEach+1) || twice > 0 {
			t.Errorf("%d requests were answered, %d twice", all, twice)
		}
		if !strings.Contains(logged(t, run), "torn") {
			t.Error("the log says nothing of the torn end")
		}
	})
	flipped := func(t *testing.T, more ...string) {
		_, run, args := start(t, "echo %d >> a", more...)
		path := filepath.Join(run, record.TurnsName)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[bytes.Index(data, []byte(`"Message"`))] ^= 4
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		succeed(t, args...)
		var anew []string
		for _, ep := range episodes(t, run) {
			if len(ep.Earlier) > 0 && ep.Earlier[0].Fault.Class == "record_damaged" {
				anew = append(anew, ep.ID)
			}
		}
		if len(anew) != 1 || !strings.Contains(logged(t, run), anew[0]) {
			t.Errorf("%v started anew, want one, and named in the log", anew)
		}
	}
	t.Run("a flipped bit", func(t *testing.T) {
		t.Parallel()
		flipped(t)
	})
	t.Run("a flipped bit beside a tape", func(t *testing.T) {
		t.Parallel()
		taped := filepath.Join(t.TempDir(), "tape")
		flipped(t, "--record", taped)
	})
}

// TestTemporaryFiles holds that a resume takes away what a runner left that died while it wrote a file.
func TestTemporaryFiles(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", tasks(t, 1), "--policy", "oracle", "--quiet", "--out", run, "--max-error-share", "1"}
	succeed(t, args...)
	left := filepath.Join(run, ".tmp-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, append(args, "--resume")...)
	if exists(left) {
		t.Error("it is still there")
	}
}

// TestBudgetKeepsTurns holds that what a budget stopped in the middle is not paid for again when there is more.
func TestBudgetKeepsTurns(t *testing.T) {
	t.Parallel()
	dataset := longTasks(t, 3, 4, "echo %d >> a")
	s, url := openTurnstile(t, dataset)
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "3", "--quiet", "--toolsets", "terminal",
		"--sandbox", "local", "--command-policy", "record", "--durable-turns", "--out", run, "--max-tokens", "100", "--max-in-flight", "1"}
	if got := trajgen(t, append(args, "--budget-tokens", "45000")...); got.code != exitBudget {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	succeed(t, append(args, "--resume", "--budget-tokens", "1000000")...)
	if all, twice := s.forget(); all != 15 || twice > 0 {
		t.Errorf("%d requests were answered, %d of them twice; want 15", all, twice)
	}
	var all []int
	for _, ep := range episodes(t, run) {
		all = append(all, len(ep.Resumed))
	}
	if !slices.Contains(all, 1) {
		t.Error("no episode was stopped in its middle: the test shows nothing")
	}
}

// TestKilledBetweenAttempts kills a run whose episode has failed once: the retry that is left is made, and no other.
func TestKilledBetweenAttempts(t *testing.T) {
	t.Parallel()
	dataset := longTasks(t, 1, 1, "echo %d >> a")
	s, url := openTurnstile(t, dataset)
	run := filepath.Join(t.TempDir(), "run")
	args := []string{"run", "--dataset", dataset, "--model", "m", "--base-url", url, "--workers", "1", "--quiet", "--toolsets", "terminal",
		"--sandbox", "local", "--command-policy", "record", "--out", run, "--episode-retries", "2", "--request-retries", "0"}
	s.poison = "Write lines"
	killed(t, s, 2, 1, args...)
	if got := trajgen(t, append(args, "--resume")...); got.code != exitErrors {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	ep := episodes(t, run)[0]
	if ep.Attempt != 3 || len(ep.Earlier) != 2 || !ep.Earlier[0].AtOnce || ep.Earlier[1].Fault.Class != "server" || ep.Earlier[1].Started.IsZero() {
		t.Errorf("attempt %d, earlier %+v", ep.Attempt, ep.Earlier)
	}
	// Later retries are counted anew, and the history goes on.
	if got := trajgen(t, append(args, "--resume", "--retry-errors", "--max-episode-retries", "3")...); got.code != exitErrors {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
	if ep := episodes(t, run)[0]; ep.Attempt != 5 || len(ep.Earlier) != 4 || ep.Earlier[2].AtOnce || !ep.Earlier[3].AtOnce {
		t.Errorf("attempt %d, earlier %+v", ep.Attempt, ep.Earlier)
	}
}
