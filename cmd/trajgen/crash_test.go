package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trajgen/pipeline/run"
)

// The crash harness: runs are killed at moments drawn from a seed and resumed until they are done. Whatever happened, the
// rows are those of an undisturbed run, and nothing that had been finished was asked for again.
//
//	CRASH_STORIES  how many runs (3; CI takes 12 more, make crashes 400)
//	CRASH_SEED     of the first of them (1): a story that fails is told again by its seed alone

const (
	crashTasks   = 40
	crashSamples = 2
	crashTurns   = 3
)

// TestCrashes tells the stories.
func TestCrashes(t *testing.T) {
	stories, first := number(t, "CRASH_STORIES", 3), number(t, "CRASH_SEED", 1)
	model := openCrashModel(t)
	dataset := crashDataset(t)
	build(t)
	calm := &story{model: model, dataset: dataset, workers: 4, sandbox: "local", dir: filepath.Join(t.TempDir(), "calm")}
	began := time.Now()
	calm.done(t, false)
	typical := time.Since(began)
	want := anywhere(rows(t, calm.dir))
	if len(want) != crashTasks*crashSamples {
		t.Fatalf("%d rows, want %d", len(want), crashTasks*crashSamples)
	}
	kills := map[string]int{}
	for seed := first; seed < first+stories; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newStory(t, seed, dataset, typical)
			for what, n := range s.tell(t) {
				kills[what] += n
			}
			sameRows(t, want, anywhere(rows(t, s.dir)))
			s.nothingLeft(t)
		})
	}
	nothingRuns(t, filepath.Dir(build(t)))
	total := 0
	for _, what := range slices.Sorted(maps.Keys(kills)) {
		t.Logf("%-28s %d", what, kills[what])
		total += kills[what]
	}
	t.Logf("%d kills in %d runs; undisturbed, a run took %s", total, stories, typical)
	if total < 2*stories {
		t.Errorf("%d kills in %d runs: the moments come too late to prove anything", total, stories)
	}
}

// anywhere forgets where a sandbox of local was: its folder has another name each time.
func anywhere(rows []string) []string {
	for i, row := range rows {
		rows[i] = localFolder.ReplaceAllString(row, "/workspace")
	}
	return rows
}

var localFolder = regexp.MustCompile(`/[a-z/]+/local-\d+/[a-z0-9]+-\d+/workspace`)

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a positive number", name, os.Getenv(name))
	}
	return n
}

// crashDataset has tasks whose reward depends on what their tools left behind.
func crashDataset(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for n := range crashTasks {
		fmt.Fprintf(&text, `{"id":"t%d","prompt":"task t%d","verify":{"command":"test -s f.txt"}}`+"\n", n, n)
	}
	return write(t, "crash.jsonl", text.String())
}

// story is one run and what happens to it.
type story struct {
	seed             int
	moments          *rand.Rand
	model            *crashModel
	dataset, dir     string
	workers          int
	sandbox, segment string
	typical          time.Duration // of a whole run that nobody disturbs
}

func newStory(t *testing.T, seed int, dataset string, typical time.Duration) *story {
	moments := rand.New(rand.NewPCG(uint64(seed), 6))
	pick := func(from ...string) string { return from[moments.IntN(len(from))] }
	workers, _ := strconv.Atoi(pick("1", "3", "8", "32"))
	return &story{
		seed: seed, moments: moments, model: openCrashModel(t), dataset: dataset, dir: filepath.Join(t.TempDir(), "run"),
		workers: workers, sandbox: pick("local", "native"), segment: pick("4K", "64K", "64M"), typical: typical,
	}
}

func (s *story) command(resume bool) *exec.Cmd {
	args := []string{"run", "--dataset", s.dataset, "--base-url", s.model.url, "--model", "m", "--samples", strconv.Itoa(crashSamples),
		"--toolsets", "file,terminal", "--workers", strconv.Itoa(s.workers), "--sandbox", s.sandbox, "--seed", "6", "--out", s.dir, "--quiet",
		"--journal-segment", cmp.Or(s.segment, "64M"), "--episode-retries", "5"}
	if resume {
		args = append(args, "--resume")
	}
	cmd := exec.Command(binary.path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// done plays the run to its end.
func (s *story) done(t *testing.T, resume bool) {
	t.Helper()
	if got := finish(t, s.command(resume)); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.errOut)
	}
}

// tell kills the run again and again, and returns what it did how often.
func (s *story) tell(t *testing.T) map[string]int {
	kills := map[string]int{}
	for range 30 {
		cmd := s.command(s.begun())
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		s.model.forbid(s.finished(t))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		what := s.disturb(cmd.Process.Pid, ended)
		<-ended
		if asked := s.model.forbidden(); asked != "" {
			t.Fatalf("%s was finished, and its model was asked again", asked)
		}
		if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			kills[what]++
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("after %v: exit code %d: %s", kills, code, errOut.String())
		}
		return kills
	}
	s.done(t, true)
	return kills
}

// disturb waits for a moment and strikes, unless the run ends before.
func (s *story) disturb(pid int, ended <-chan struct{}) string {
	wait := func(ready func() bool) bool {
		for !ready() {
			select {
			case <-ended:
				return false
			case <-time.After(time.Millisecond):
			}
		}
		return true
	}
	at := time.Now().Add(time.Duration(s.moments.Int64N(int64(s.typical) / 5)))
	later := func() bool { return time.Now().After(at) }
	kill := func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
	switch s.moments.IntN(6) {
	case 0:
		if wait(func() bool { return exists(filepath.Join(s.dir, "trajectories", ".part-00000.parquet.tmp")) }) {
			kill()
		}
		return "during the export"
	case 1:
		want := s.segments() + 1
		if wait(func() bool { return s.segments() > want || later() && s.segments() >= want }) {
			kill()
		}
		return "behind a rotation"
	case 2:
		if wait(later) {
			for _, child := range children(pid) {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
			kill()
		}
		return "with its children, these first"
	case 3:
		if wait(later) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		return "with its process group"
	}
	if wait(later) {
		kill()
	}
	return "alone, at any moment"
}

// begun says whether there is something to resume: before run.json is there, a run has not begun.
func (s *story) begun() bool { return exists(filepath.Join(s.dir, "run.json")) }

func (s *story) segments() int {
	list, _ := filepath.Glob(filepath.Join(run.JournalDir(s.dir), "*.seg"))
	return len(list)
}

// finished are the seeds with which a model is never to be asked again.
func (s *story) finished(t *testing.T) map[int]string {
	seeds := map[int]string{}
	if !s.begun() {
		return seeds
	}
	for _, ep := range episodes(t, s.dir) {
		for turn := range crashTurns {
			seeds[ep.Key.RequestSeed(turn)] = ep.Key.Task
		}
	}
	return seeds
}

// nothingLeft looks for what a crash left in the run directory.
func (s *story) nothingLeft(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if name := entry.Name(); err == nil && (strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, ".tmp-")) {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// children are the processes that another one started.
func children(pid int) (list []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// crashModel is a server whose replies follow from the conversation alone, and which remembers who asks.
type crashModel struct {
	url string

	mu      sync.Mutex // guards what follows
	never   map[int]string
	offence string
}

func openCrashModel(t *testing.T) *crashModel {
	t.Helper()
	m := &crashModel{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *crashModel) forbid(seeds map[int]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.never = seeds
}

func (m *crashModel) forbidden() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offence
}

func (m *crashModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fmt.Fprint(w, `{"data":[]}`)
		return
	}
	var body struct {
		Seed     int
		Messages []struct{ Role, Content string }
	}
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	if task, ok := m.never[body.Seed]; ok {
		m.offence = task
	}
	m.mu.Unlock()
	turn, said := 0, fnv.New64a()
	for _, message := range body.Messages {
		if message.Role == "assistant" {
			turn++
		}
		if message.Role == "user" {
			said.Write([]byte(message.Content))
		}
	}
	content, calls := fmt.Sprintf(`"done %x"`, said.Sum64()), ""
	switch turn {
	case 0:
		content, calls = "null", call("write_file", map[string]any{"path": "f.txt", "content": strings.Repeat(fmt.Sprintf("%x\n", said.Sum64()), 40)})
	case 1:
		content, calls = "null", call("terminal", map[string]any{"command": "wc -c f.txt; sort f.txt | uniq -c"})
	}
	fmt.Fprintf(w, `{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s%s}}],"usage":{"prompt_tokens":%d,"completion_tokens":7}}`,
		content, calls, 10*turn+10)
}

// call is the part of a message with one tool call.
func call(name string, arguments map[string]any) string {
	text, _ := json.Marshal(arguments)
	quoted, _ := json.Marshal(string(text))
	return fmt.Sprintf(`,"tool_calls":[{"id":"c","type":"function","function":{"name":%q,"arguments":%s}}]`, name, quoted)
}
