package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/distributions"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
)

// slice is a dataset.
func slice(n int) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		for i := range n {
			if !yield(&episode.Task{ID: fmt.Sprintf("task-%d", i), Row: i}, nil) {
				return
			}
		}
	}
}

// memory is a journal in memory.
type memory struct {
	mu       sync.Mutex
	episodes []*episode.Episode
	fail     error
}

func (m *memory) Last(id string) (pipeline.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ep := range slices.Backward(m.episodes) {
		if ep.ID == id {
			return pipeline.Record{
				Outcome: ep.Outcome, Attempt: ep.Attempt, Pending: ep.Pending, Earlier: append(slices.Clone(ep.Earlier), ep.Ended()),
			}, true
		}
	}
	return pipeline.Record{}, false
}

func (m *memory) Append(_ context.Context, ep *episode.Episode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.episodes = append(m.episodes, ep)
	return nil
}

// play is a Player.
type play func(ctx context.Context, task *episode.Task, ep *episode.Episode) error

func (p play) Play(ctx context.Context, task *episode.Task, ep *episode.Episode) error {
	return p(ctx, task, ep)
}

func succeed(_ context.Context, _ *episode.Task, ep *episode.Episode) error {
	ep.Outcome = episode.Success
	return nil
}

func config(tasks, workers int, player play, journal *memory) pipeline.Config {
	development, err := distributions.Get("development")
	if err != nil {
		panic(err)
	}
	return pipeline.Config{
		Tasks: slice(tasks), Samples: 3, Seed: 5, Workers: workers, Player: player, Journal: journal,
		Draw: func(*episode.Task) (pipeline.Toolsets, error) {
			return pipeline.Toolsets{Distribution: &development}, nil
		},
	}
}

// TestSameDraws holds that neither the number of workers nor a resume changes an episode's identity or toolsets.
func TestSameDraws(t *testing.T) {
	rows := func(m *memory) []string {
		var rows []string
		for _, ep := range m.episodes {
			rows = append(rows, fmt.Sprint(ep.ID, ep.Key, ep.Row, ep.Toolsets, ep.LogP, ep.Distribution))
		}
		slices.Sort(rows)
		return rows
	}
	var want []string
	for _, workers := range []int{1, 4, 64} {
		journal := &memory{}
		summary, err := pipeline.Run(t.Context(), config(20, workers, succeed, journal))
		if err != nil || summary.Finished != 60 || summary.Planned != 60 {
			t.Fatalf("%d workers: %+v, %v", workers, summary, err)
		}
		if want == nil {
			want = rows(journal)
		}
		if diff := cmp.Diff(want, rows(journal)); diff != "" {
			t.Errorf("%d workers: %s", workers, diff)
		}
		journal.episodes = slices.Delete(journal.episodes, 10, 25)
		summary, err = pipeline.Run(t.Context(), config(20, workers, succeed, journal))
		if err != nil || summary.Finished != 15 || summary.Skipped != 45 {
			t.Fatalf("resume with %d workers: %+v, %v", workers, summary, err)
		}
		if diff := cmp.Diff(want, rows(journal)); diff != "" {
			t.Errorf("resume with %d workers: %s", workers, diff)
		}
	}
}

// TestDrawByTask holds that a task's samples are a group: one draw, with its probability, while tasks differ.
func TestDrawByTask(t *testing.T) {
	for _, byTask := range []bool{true, false} {
		journal := &memory{}
		cfg := config(20, 4, succeed, journal)
		from, err := cfg.Draw(nil)
		if err != nil {
			t.Fatal(err)
		}
		from.ByTask = byTask
		cfg.Draw = func(*episode.Task) (pipeline.Toolsets, error) { return from, nil }
		if _, err := pipeline.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		all, ofTask := map[string]bool{}, map[string]string{}
		groups := true
		for _, ep := range journal.episodes {
			draw := fmt.Sprint(ep.Toolsets, ep.LogP)
			groups = groups && (ofTask[ep.Key.Task] == "" || ofTask[ep.Key.Task] == draw)
			all[draw], ofTask[ep.Key.Task] = true, draw
			if want := from.Distribution.LogP(ep.Toolsets); ep.LogP != want {
				t.Errorf("log_p of %v is %v, want %v", ep.Toolsets, ep.LogP, want)
			}
		}
		if groups != byTask || len(all) < 2 {
			t.Errorf("by task %v: samples of a task share their draw: %v; %d different draws", byTask, groups, len(all))
		}
	}
}

func TestRetry(t *testing.T) {
	journal := &memory{}
	cfg := config(1, 2, func(_ context.Context, _ *episode.Task, ep *episode.Episode) error {
		ep.Outcome = episode.Success
		if ep.Attempt < 3 {
			ep.Outcome = episode.SandboxError
			ep.Fault = &episode.Fault{Outcome: episode.SandboxError, Class: "open", Message: fmt.Sprint("try ", ep.Attempt)}
		}
		return nil
	}, journal)
	cfg.Retries, cfg.Samples = 1, 1
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if ep := journal.episodes[0]; ep.Outcome != episode.SandboxError || ep.Attempt != 1 || !ep.Pending {
		t.Errorf("first attempt: %+v", ep)
	}
	if ep := journal.episodes[1]; ep.Outcome != episode.SandboxError || ep.Attempt != 2 || len(ep.Earlier) != 1 || ep.Earlier[0].Fault.Message != "try 1" || ep.Pending {
		t.Errorf("first run: %+v", ep)
	}
	// A later run leaves it alone, unless it is told otherwise.
	if summary, err := pipeline.Run(t.Context(), cfg); err != nil || summary.Skipped != 1 {
		t.Errorf("second run: %+v, %v", summary, err)
	}
	cfg.RetryErrors = true
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if ep := journal.episodes[2]; ep.Outcome != episode.Success || ep.Attempt != 3 || ep.ID != journal.episodes[0].ID || len(ep.Earlier) != 2 {
		t.Errorf("with RetryErrors: %+v", ep)
	}
}

// TestLastingErrorsAreNotRetried holds that what would be met again is played once, with a user's model as well.
func TestLastingErrorsAreNotRetried(t *testing.T) {
	faults := []episode.Fault{
		{Outcome: episode.VerifierError},
		{Outcome: episode.ModelError, Class: "request_too_large"},
		{Outcome: episode.ModelError, Class: "reply_too_large"},
		{Outcome: episode.ModelError, Class: "user_request_too_large"},
		{Outcome: episode.ModelError, Class: "user"},
	}
	for _, fault := range faults {
		journal, plays := &memory{}, 0
		cfg := config(1, 1, func(_ context.Context, _ *episode.Task, ep *episode.Episode) error {
			plays++
			ep.Outcome, ep.Fault = fault.Outcome, &fault
			return nil
		}, journal)
		cfg.Retries, cfg.Samples = 5, 1
		if _, err := pipeline.Run(t.Context(), cfg); err != nil || plays != 1 {
			t.Errorf("%+v: %d plays, %v, want 1", fault, plays, err)
		}
	}
}

func TestDrain(t *testing.T) {
	journal, drain := &memory{}, make(chan struct{})
	started := make(chan struct{}, 100)
	release := make(chan struct{})
	cfg := config(50, 4, func(context.Context, *episode.Task, *episode.Episode) error {
		started <- struct{}{}
		<-release
		return nil
	}, journal)
	cfg.Drain = drain
	done := make(chan pipeline.Summary)
	go func() {
		summary, err := pipeline.Run(t.Context(), cfg)
		if err != nil {
			t.Error(err)
		}
		done <- summary
	}()
	for range 4 {
		<-started
	}
	close(drain)
	close(release)
	summary := <-done
	if !summary.Drained || summary.Finished < 4 || summary.Finished > 5 || len(journal.episodes) != summary.Finished {
		t.Errorf("summary = %+v with %d in the journal, want what was in play", summary, len(journal.episodes))
	}
}

func TestCancelledIsNotJournaled(t *testing.T) {
	journal := &memory{}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cfg := config(50, 4, func(ctx context.Context, _ *episode.Task, _ *episode.Episode) error {
		cancel(reason)
		<-ctx.Done()
		return context.Cause(ctx)
	}, journal)
	_, err := pipeline.Run(ctx, cfg)
	if !errors.Is(err, reason) || len(journal.episodes) != 0 {
		t.Errorf("err = %v with %d in the journal, want %v and none", err, len(journal.episodes), reason)
	}
}

func TestFatalStops(t *testing.T) {
	journal, fatal := &memory{}, errors.New("wrong key")
	_, err := pipeline.Run(t.Context(), config(50, 4, func(context.Context, *episode.Task, *episode.Episode) error { return fatal }, journal))
	if !errors.Is(err, fatal) || !errors.Is(err, pipeline.ErrStop) || len(journal.episodes) != 0 {
		t.Errorf("err = %v with %d in the journal", err, len(journal.episodes))
	}
}

// halting is an error that ends the planning.
type halting struct{}

func (halting) Error() string { return "nothing is left" }
func (halting) Halt() bool    { return true }

// TestHalt holds that an episode that cannot go on halts the run: it is not journaled, nothing new is started, and
// what is in play is finished.
func TestHalt(t *testing.T) {
	for _, workers := range []int{1, 2} {
		journal, began := &memory{}, make(chan struct{}, 36)
		_, err := pipeline.Run(t.Context(), config(12, workers, func(_ context.Context, _ *episode.Task, ep *episode.Episode) error {
			began <- struct{}{}
			if ep.Row == 0 && ep.Key.Sample == 0 {
				for len(began) < workers {
					runtime.Gosched()
				}
				return fmt.Errorf("turn 3: %w", halting{})
			}
			ep.Outcome = episode.Success
			return nil
		}, journal))
		played := len(began)
		if !errors.Is(err, halting{}) || errors.Is(err, pipeline.ErrStop) {
			t.Errorf("%d workers: Run = %v, want the reason to halt", workers, err)
		}
		if len(journal.episodes) != played-1 || workers == 1 && played != 1 {
			t.Errorf("%d workers: %d episodes of %d are journaled, want all but the one that could not go on", workers, len(journal.episodes), played)
		}
	}
}

func TestErrorsInRowStop(t *testing.T) {
	journal := &memory{}
	cfg := config(50, 1, func(_ context.Context, _ *episode.Task, ep *episode.Episode) error {
		ep.Outcome = episode.ModelError
		ep.Fault = &episode.Fault{Outcome: episode.ModelError, Class: "connection", Message: "refused"}
		return nil
	}, journal)
	cfg.MaxErrorsInRow = 7
	_, err := pipeline.Run(t.Context(), cfg)
	if n := len(journal.episodes); !errors.Is(err, pipeline.ErrStop) || n < 19 || n > 21 { // three samples of each task
		t.Errorf("err = %v with %d in the journal, want a stop at the seventh task", err, n)
	}
}

// TestLastErrorsStopNothing holds that errors of the last tasks leave a run that has started everything as it is.
func TestLastErrorsStopNothing(t *testing.T) {
	journal, started := &memory{}, make(chan struct{})
	cfg := config(0, 20, func(_ context.Context, task *episode.Task, ep *episode.Episode) error {
		<-started
		if ep.Outcome = episode.Success; task.Row >= 10 {
			ep.Outcome, ep.Fault = episode.ModelError, &episode.Fault{Outcome: episode.ModelError, Class: "server"}
		}
		return nil
	}, journal)
	cfg.Tasks = func(yield func(*episode.Task, error) bool) {
		slice(20)(yield)
		close(started)
	}
	cfg.Samples, cfg.MaxErrorsInRow = 1, 1
	if _, err := pipeline.Run(t.Context(), cfg); err != nil || len(journal.episodes) != 20 {
		t.Errorf("err = %v with %d in the journal, want all 20", err, len(journal.episodes))
	}
}

// TestBrokenTaskStopsNothing holds that many samples of one task that cannot be played do not end the run.
func TestBrokenTaskStopsNothing(t *testing.T) {
	journal := &memory{}
	cfg := config(3, 2, func(_ context.Context, task *episode.Task, ep *episode.Episode) error {
		ep.Outcome = episode.Success
		if task.Row == 0 {
			ep.Outcome, ep.Fault = episode.SandboxError, &episode.Fault{Outcome: episode.SandboxError, Class: "setup"}
		}
		return nil
	}, journal)
	cfg.Samples, cfg.MaxErrorsInRow, cfg.Retries = 40, 7, 3
	if _, err := pipeline.Run(t.Context(), cfg); err != nil || len(journal.episodes) != 120 {
		t.Errorf("err = %v with %d in the journal, want all 120", err, len(journal.episodes))
	}
	for _, ep := range journal.episodes {
		if ep.Attempt != 1 {
			t.Fatalf("attempt %d of what cannot pass", ep.Attempt)
		}
	}
}

// TestPanicInTheJournalStops holds that no episode is missing without a word.
func TestPanicInTheJournalStops(t *testing.T) {
	cfg := config(3, 2, succeed, &memory{})
	cfg.Journal = panics{}
	if _, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, pipeline.ErrStop) {
		t.Errorf("err = %v, want a stop", err)
	}
}

type panics struct{}

func (panics) Last(string) (pipeline.Record, bool)            { return pipeline.Record{}, false }
func (panics) Append(context.Context, *episode.Episode) error { panic("bug") }

func TestJournalFailureStops(t *testing.T) {
	journal := &memory{fail: errors.New("disk full")}
	_, err := pipeline.Run(t.Context(), config(50, 4, succeed, journal))
	if !errors.Is(err, journal.fail) {
		t.Errorf("err = %v, want %v", err, journal.fail)
	}
}

func TestPanicIsARow(t *testing.T) {
	journal := &memory{}
	cfg := config(2, 2, func(context.Context, *episode.Task, *episode.Episode) error { panic("bug") }, journal)
	cfg.Samples = 1
	if _, err := pipeline.Run(t.Context(), cfg); err != nil || len(journal.episodes) != 2 {
		t.Fatalf("%v, %d episodes", err, len(journal.episodes))
	}
	if ep := journal.episodes[0]; ep.Outcome != episode.ToolError || ep.Fault == nil || ep.Fault.Class != "panic" || ep.Reward != nil {
		t.Errorf("episode = %+v", ep)
	}
}
