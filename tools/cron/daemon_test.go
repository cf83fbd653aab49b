package cron_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/outputs/log/disk"
	"trajgen/tools/cron"
)

// sleeper runs jobs that sleep as long as their prompt says.
type sleeper struct {
	mu   sync.Mutex
	runs []string
	most int // at once
	now  int
}

func (s *sleeper) Busy(string) bool { return false }

func (s *sleeper) Run(ctx context.Context, tick cron.Tick) cron.Ended {
	s.mu.Lock()
	s.runs = append(s.runs, tick.Job.Name+" "+tick.At.UTC().Format("15:04:05"))
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	length, _ := time.ParseDuration(tick.Job.Prompt)
	select {
	case <-time.After(length):
	case <-ctx.Done():
		time.Sleep(time.Second) // it ends in good order
	}
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return cron.Ended{Tick: tick.At, Status: cron.OK}
}

func newStore(t *testing.T, now time.Time, jobs ...cron.Job) *cron.Store {
	t.Helper()
	store, err := cron.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		j.Zone = "UTC"
		if err := store.Update(func(table *cron.Table) error { _, err := table.Add(j, now); return err }); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

var silent = slog.New(slog.DiscardHandler)

// TestDaemon runs jobs for some hours, at most two at once, with one that is added meanwhile.
func TestDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := newStore(t, start,
			cron.Job{Name: "long", Schedule: "every 2h", Prompt: "90m"}, cron.Job{Name: "a", Schedule: "every 1h", Prompt: "5m"},
			cron.Job{Name: "b", Schedule: "every 2h", Prompt: "5m"})
		runner := &sleeper{}
		daemon := cron.Daemon{Store: store, Runner: runner, AtOnce: 2, Now: time.Now, Logger: silent}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- daemon.Run(ctx) }()
		time.Sleep(2*time.Hour + 30*time.Minute)
		if err := store.Update(func(table *cron.Table) error {
			_, err := table.Add(cron.Job{Name: "late", Schedule: "10m", Zone: "UTC", Prompt: "1s"}, time.Now())
			return err
		}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := "a 01:00:00, long 02:00:00, a 02:00:00, b 02:00:00, late 02:40:00, a 03:00:00"
		if got := strings.Join(runner.runs, ", "); got != want && got != strings.Replace(want, "long 02:00:00, a 02:00:00", "a 02:00:00, long 02:00:00", 1) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if runner.most != 2 || runner.now != 0 {
			t.Errorf("%d jobs ran at once, and %d still run", runner.most, runner.now)
		}
		table, err := store.Read()
		if err != nil || table.Jobs[1].Runs != 3 || table.Jobs[1].Last.Status != cron.OK || table.Jobs[3].State != cron.Done {
			t.Errorf("%+v, %v", table.Jobs, err)
		}
	})
}

// TestClockJump puts the clock forward and back while the daemon waits: it notices, and runs each time once.
func TestClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64 // nanoseconds
		start := time.Now()
		store := newStore(t, start, cron.Job{Name: "a", Schedule: "every 1h", Prompt: "1s"})
		runner := &sleeper{}
		daemon := cron.Daemon{Store: store, Runner: runner, AtOnce: 1, Logger: silent}
		daemon.Now = func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- daemon.Run(ctx) }()
		for _, move := range []time.Duration{0, 50 * time.Minute, -50 * time.Minute} {
			time.Sleep(time.Minute)
			synctest.Wait()
			jump.Add(int64(move))
		}
		time.Sleep(3 * time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := strings.Join(runner.runs, ", "); got != "a 01:00:00, a 02:00:00, a 03:00:00" {
			t.Errorf("got %s", got)
		}
	})
}

func processes(t *testing.T, store *cron.Store) *cron.Processes {
	return &cron.Processes{Store: store, Hurry: t.Context().Done(), Work: func(tick cron.Tick) (cron.Work, error) {
		return cron.Work{Args: []string{"echo", "played", tick.Job.Prompt}}, nil
	}}
}

// TestProcesses runs real processes: what they write, how they end, and to whom that is delivered.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	sh := func(name, script string) cron.Job {
		return cron.Job{Name: name, Schedule: "1h", Command: []string{"sh", "-c", script}}
	}
	told := sh("told", `echo "$TRAJGEN_CRON_JOB at $TRAJGEN_CRON_TICK in $PWD"; echo beside >&2`)
	told.Workdir, told.Deliver = dir, "file:"+filepath.Join(dir, "told.txt")
	piped := sh("piped", "echo hello; exit 3")
	piped.Workdir, piped.Deliver = dir, `command:tr a-z A-Z > piped.txt; echo "$TRAJGEN_CRON_STATUS" >> piped.txt`
	slow := sh("slow", "trap '' TERM; sleep 60 & echo $! ; wait")
	slow.Timeout = "50ms"
	lost := sh("lost", "true")
	lost.Deliver = "command:echo no; exit 4"
	start := at(t, began)
	store := newStore(t, start, told, piped, lost, cron.Job{Name: "prompt", Schedule: "1h", Prompt: "hi"},
		cron.Job{Name: "none", Schedule: "1h", Command: []string{"/nothing/there"}})
	tick := start.Add(time.Hour)
	daemon := cron.Daemon{Store: store, Runner: processes(t, store), AtOnce: 2, Now: func() time.Time { return tick }, Logger: silent}
	if err := daemon.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := store.Read()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, j := range table.Jobs {
		output, _ := os.ReadFile(store.Output(j.ID))
		fmt.Fprintf(&got, "%s %s %s %d: %s%s\n", j.Name, j.State, j.Last.Status, j.Last.Exit, bytes.ReplaceAll(output, []byte("\n"), []byte("|")), j.Last.Error)
	}
	want := "told done ok 0: told at 2026-11-30T10:00:00Z in " + dir + "|beside|\n" +
		"piped done failed 3: hello|\n" +
		"lost done failed 0: deliver: exit status 4: no\n" +
		"prompt done ok 0: played hi|\n" +
		"none done failed 0: fork/exec /nothing/there: no such file or directory\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	for name, want := range map[string]string{"told.txt": "told at", "piped.txt": "HELLO\nfailed\n"} {
		if delivered, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(delivered), want) {
			t.Errorf("%s: %q, %v", name, delivered, err)
		}
	}
	if text, err := store.Context(table, []string{"piped", "none"}); err != nil || text != "The last output of piped:\nhello\n\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTimeout holds that a job which takes too long is ended with what it started.
func TestTimeout(t *testing.T) {
	job := cron.Job{ID: "job_1", Name: "slow", Timeout: "50ms", Command: []string{"sh", "-c", "sleep 60 & echo $!; wait"}}
	store := newStore(t, at(t, began))
	p := processes(t, store)
	if ended := p.Run(t.Context(), cron.Tick{Job: job}); ended.Status != cron.Timeout {
		t.Errorf("%+v", ended)
	}
	output, err := os.ReadFile(store.Output(job.ID))
	var child int
	if _, scanned := fmt.Sscan(string(output), &child); err != nil || scanned != nil {
		t.Fatalf("%q, %v", output, err)
	}
	for range 1000 {
		if err := syscall.Kill(child, 0); errors.Is(err, syscall.ESRCH) || zombie(child) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("its child lives")
}

func zombie(pid int) bool {
	state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return bytes.Contains(state, []byte(") Z "))
}

// TestInterrupt holds that a job is asked to end, and that its output is kept.
func TestInterrupt(t *testing.T) {
	job := cron.Job{ID: "job_1", Name: "run", Command: []string{"sh", "-c", "trap 'echo finishing; exit 130' INT; echo begun; while :; do sleep 0.01; done"}}
	store := newStore(t, at(t, began))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan cron.Ended, 1)
	p := processes(t, store)
	go func() { ended <- p.Run(ctx, cron.Tick{Job: job}) }()
	for {
		if part, _ := os.ReadFile(store.Output(job.ID) + ".part"); len(part) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !p.Busy(job.ID) {
		t.Error("it runs, and is not busy")
	}
	if again := p.Run(t.Context(), cron.Tick{Job: job}); again.Status != cron.Failed || !strings.Contains(again.Error, "still there") {
		t.Errorf("a second run beside it: %+v", again)
	}
	cancel()
	if got := <-ended; got.Exit != 130 || got.Status != cron.Failed {
		t.Errorf("%+v", got)
	}
	if output, _ := os.ReadFile(store.Output(job.ID)); string(output) != "begun\nfinishing\n" {
		t.Errorf("output %q", output)
	}
}

// TestLeftBehind holds that a process which outlives its job keeps the next run from beginning beside it.
func TestLeftBehind(t *testing.T) {
	job := cron.Job{ID: "job_1", Name: "run", Command: []string{"sh", "-c", "sleep 60 & echo $!"}}
	store := newStore(t, at(t, began))
	p := processes(t, store)
	if ended := p.Run(t.Context(), cron.Tick{Job: job}); ended.Status != cron.OK {
		t.Fatalf("%+v", ended)
	}
	if !p.Busy(job.ID) {
		t.Error("what it left behind is not seen")
	}
	output, _ := os.ReadFile(store.Output(job.ID))
	var child int
	if _, err := fmt.Sscan(string(output), &child); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p.Busy(job.ID) {
		time.Sleep(time.Millisecond)
	}
}

func TestStore(t *testing.T) {
	store := newStore(t, at(t, began), cron.Job{Schedule: "1h", Prompt: "x"})
	release, err := store.Own()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Own(); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("a second daemon: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if err := store.Update(func(table *cron.Table) error { table.Made++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if table, err := store.Read(); err != nil || table.Made != 21 {
		t.Errorf("%d, %v", table.Made, err)
	}
	path := filepath.Join(store.Dir, "jobs.json")
	for _, damaged := range []string{"{", `{"jobs":[{"job_id":"job_1","schedule":"1h","timezone":"UTC","state":"scheduled"}]}`, `{"jobs":[{"job_id":"job_1","schedule":"soon"}]}`} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Read(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", damaged, err)
		}
	}
}
