package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"trajgen/pipeline/episode"
	"trajgen/tools/sessions"
)

// journal is a slice of finished episodes.
type journal struct {
	mu       sync.Mutex
	episodes []*episode.Episode
	read     int
}

func (j *journal) open() (sessions.Journal, error) { return j, nil }
func (j *journal) Close() error                    { return nil }

func (j *journal) append(ep *episode.Episode) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.episodes = append(j.episodes, ep)
}

func (j *journal) Finished() iter.Seq2[string, int] {
	j.mu.Lock()
	all := append([]*episode.Episode{}, j.episodes...)
	j.mu.Unlock()
	return func(yield func(string, int) bool) {
		for _, ep := range all {
			if !yield(ep.ID, ep.Attempt) {
				return
			}
		}
	}
}

func (j *journal) Episode(id string) (*episode.Episode, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, ep := range j.episodes {
		if ep.ID == id {
			j.read++
			return ep, nil
		}
	}
	return nil, errors.New("not there")
}

func play(task, prompt string, sample int) *episode.Episode {
	key := episode.Key{Task: task, Sample: sample}
	return &episode.Episode{
		ID: key.ID(), Key: key, Attempt: 1, Outcome: episode.Success, Answer: "the answer of " + task,
		Task:     episode.Task{ID: task, Prompt: []episode.Message{{Role: "user", Content: prompt}}},
		Messages: []episode.Message{{Role: "user", Content: prompt}, {Role: "assistant", Content: "the answer of " + task}},
	}
}

func open(t *testing.T, path string, j *journal) *sessions.Store {
	t.Helper()
	store := sessions.New(sessions.Config{Path: path, Journal: j.open})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func total(t *testing.T, store *sessions.Store, task *episode.Task, same bool) int {
	t.Helper()
	if task == nil {
		task = &episode.Task{ID: "none"}
	}
	view := sessions.View{Store: store, Task: task, SameTask: same}
	_, n, err := view.Browse(t.Context(), 3, false)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOwnTaskIsHidden holds that a sample cannot read what another sample of its task answered.
func TestOwnTaskIsHidden(t *testing.T) {
	j := &journal{}
	same := play("renamed", "what is 6*7?", 0)
	j.append(play("seven", "what is 6*7?", 0))
	j.append(play("seven#2", "what is 6 * 7?", 0)) // the same row again, reworded
	j.append(same)
	j.append(play("other", "what is 1+1?", 0))
	store := open(t, filepath.Join(t.TempDir(), "search.db"), j)
	task := &play("seven", "what is 6*7?", 1).Task
	if got := total(t, store, task, false); got != 1 {
		t.Errorf("%d sessions, want the one of the other task", got)
	}
	if got := total(t, store, task, true); got != 4 {
		t.Errorf("%d sessions with session_search_same_task, want 4", got)
	}
	view := sessions.View{Store: store, Task: task}
	if _, _, _, err := view.Read(t.Context(), same.ID, nil, 9, 9); !errors.Is(err, sessions.ErrUnknown) {
		t.Errorf("Read of a hidden session: %v, want ErrUnknown", err)
	}
	if _, _, err := view.Discover(t.Context(), sessions.Search{Query: "answer", Session: same.ID, Limit: 3}); !errors.Is(err, sessions.ErrUnknown) {
		t.Errorf("Discover in a hidden session: %v, want ErrUnknown", err)
	}
	if hits, _, err := view.Discover(t.Context(), sessions.Search{Query: "answer", Limit: 9}); err != nil || len(hits) != 1 {
		t.Errorf("Discover: %d hits, %v, want 1", len(hits), err)
	}
}

// What the harness puts into every conversation is not a session's own: a search that found it would find them all.
func TestHarnessIsNoSession(t *testing.T) {
	ep := play("a", "count zebras", 0)
	ep.Messages = append([]episode.Message{
		{Role: "system", Content: "giraffe"},
		{Role: "user", Content: "an example with a giraffe", Harness: true},
		{Role: "assistant", Content: "giraffe", Harness: true},
	}, ep.Messages...)
	j := &journal{episodes: []*episode.Episode{ep}}
	view := sessions.View{Store: open(t, filepath.Join(t.TempDir(), "s.db"), j), Task: &play("b", "x", 0).Task}
	list, _, err := view.Browse(t.Context(), 10, false)
	if err != nil || len(list) != 1 || list[0].Title != "count zebras" || list[0].Messages != 2 {
		t.Errorf("sessions %+v, %v", list, err)
	}
	for words, want := range map[string]int{"giraffe": 0, "zebras": 1} {
		hits, _, err := view.Discover(t.Context(), sessions.Search{Query: words, Limit: 3})
		if err != nil || len(hits) != want {
			t.Errorf("%q: %d hits, %v; want %d", words, len(hits), err, want)
		}
	}
}

func TestNothingIsMadeUnlessSearched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	j := &journal{}
	store := open(t, path, j)
	for i := range 10 {
		ep := play(fmt.Sprint(i), fmt.Sprint("prompt ", i), 0)
		j.append(ep)
		store.Add(ep)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat = %v, want no database before a search", err)
	}
	if got := total(t, store, nil, false); got != 10 {
		t.Errorf("%d sessions, want the 10 of the journal", got)
	}
	ep := play("later", "a later prompt", 0)
	j.append(ep)
	store.Add(ep)
	if got := total(t, store, nil, false); got != 11 {
		t.Errorf("%d sessions, want 11", got)
	}
	if j.read != 10 {
		t.Errorf("%d episodes were read from the journal, want 10", j.read)
	}
}

// TestCatchesUp stops at any point and goes on: with what the index missed, with a later attempt, without what the
// journal never had, with a damaged file, with one of another version.
func TestCatchesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	j := &journal{}
	for i := range 5 {
		j.append(play(fmt.Sprint(i), fmt.Sprint("prompt ", i), 0))
	}
	first := sessions.New(sessions.Config{Path: path, Journal: j.open})
	total(t, first, nil, false)
	first.Add(play("never journaled", "x", 0))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	j.read = 0
	j.append(play("new", "a new prompt", 0))
	again := play("1", "prompt 1 again", 0)
	again.Attempt = 2
	j.episodes[1] = again
	second := sessions.New(sessions.Config{Path: path, Journal: j.open})
	if got := total(t, second, nil, false); got != 6 || j.read != 2 {
		t.Errorf("%d sessions after %d reads, want 6 after 2", got, j.read)
	}
	view := sessions.View{Store: second, Task: &episode.Task{}}
	if hits, _, err := view.Discover(t.Context(), sessions.Search{Query: "prompt 1 again", Limit: 3}); err != nil || len(hits) != 1 {
		t.Errorf("the later attempt: %v, %v", hits, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"cut": data[:len(data)/2], "empty": {}, "other": []byte("not a database at all, but text of some length"),
		"torn": append(append([]byte{}, data[:5000]...), make([]byte, len(data)-5000)...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "search.db")
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			if got := total(t, open(t, path, j), nil, false); got != 6 {
				t.Errorf("%d sessions, want 6", got)
			}
		})
	}
}

// TestQueries holds what a query finds, and that none is an error of the database.
func TestQueries(t *testing.T) {
	j := &journal{}
	for _, text := range []string{"red apples", "green apples", "red pears, naïve \"café\"", "x(y) user's -z"} {
		j.append(play(text, text, 0))
	}
	view := sessions.View{Store: open(t, filepath.Join(t.TempDir(), "search.db"), j), Task: &episode.Task{}}
	for query, want := range map[string]int{
		"apples": 2, "red apples": 1, "red OR pears": 2, "apples NOT red": 1, "NOT red": 0, "NOT red apples": 1,
		"NOT red NOT green apples": 0, "apples NOT NOT red": 1, "AND apples OR": 2, `"red apples"`: 1, `"apples red"`: 0, "app*": 2,
		"*": 0, `"`: 0, `""`: 0, "": 0, "NAIVE cafe": 1, "user's": 1, "x(y)": 1, "-z": 1, "red\x00apples": 1, "NOT": 0,
		"AND OR NOT (": 0, `red "apples`: 1, "purple apples": 2, "{red}": 2, "red^2 OR content:red": 0,
	} {
		hits, _, err := view.Discover(t.Context(), sessions.Search{Query: query, Limit: 10})
		if err != nil || len(hits) != want {
			t.Errorf("%q finds %d, want %d, error %v", query, len(hits), want, err)
		}
	}
	words := []string{"red", "apples", "NOT", "AND", "OR", "NEAR", `"`, "*", "(", ")", "-", "^", ":", "'", "{", "+", "ü", "\x00", "\xff", ";", "--"}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(rt, "words")
		query := strings.Join(parts, rapid.SampledFrom([]string{"", " "}).Draw(rt, "between"))
		if _, _, err := view.Discover(t.Context(), sessions.Search{Query: query, Limit: 3}); err != nil {
			rt.Errorf("%q: %v", query, err)
		}
	})
}

func TestErrorsAreNoSessions(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "search.db"), &journal{})
	total(t, store, nil, false)
	ep := play("a", "b", 0)
	ep.Outcome = episode.ModelError
	store.Add(ep)
	if got := total(t, store, nil, false); got != 0 {
		t.Errorf("%d sessions, want none", got)
	}
}

// TestManyAtOnce adds and searches from many goroutines, and closes meanwhile.
func TestManyAtOnce(t *testing.T) {
	j := &journal{}
	store := sessions.New(sessions.Config{Path: filepath.Join(odd(t), "search.db"), Journal: j.open})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 10 {
				ep := play(fmt.Sprint(worker, "-", i), fmt.Sprint("prompt ", worker, " ", i), 0)
				j.append(ep)
				store.Add(ep)
				view := sessions.View{Store: store, Task: &ep.Task}
				if _, _, err := view.Discover(context.Background(), sessions.Search{Query: "prompt answer", Limit: 3}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := total(t, store, nil, false); got != 40 {
		t.Errorf("%d sessions, want 40", got)
	}
	for range 4 {
		group.Go(func() { store.Add(play("late", "late", 0)) })
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	view := sessions.View{Store: store, Task: &episode.Task{}}
	if _, _, err := view.Browse(t.Context(), 1, false); !errors.Is(err, sessions.ErrClosed) {
		t.Errorf("Browse after Close: %v, want ErrClosed", err)
	}
}

// odd is a directory whose name means something in a URL.
func odd(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a run?x=1#y %20")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// FuzzDiscover holds that no query is an error.
func FuzzDiscover(f *testing.F) {
	for _, query := range []string{"a", `"a b" OR c*`, "NOT a", `""`, "a AND", "(a)", "-a", "content:a", "NEAR(a b)", "\x00", "^a", "ä*"} {
		f.Add(query)
	}
	j := &journal{}
	j.append(play("a", "a b c", 0))
	store := sessions.New(sessions.Config{Path: filepath.Join(f.TempDir(), "search.db"), Journal: j.open})
	f.Cleanup(func() { store.Close() })
	f.Fuzz(func(t *testing.T, query string) {
		view := sessions.View{Store: store, Task: &episode.Task{}}
		if _, _, err := view.Discover(t.Context(), sessions.Search{Query: query, Limit: 3}); err != nil {
			t.Errorf("Discover(%q): %v", query, err)
		}
	})
}

// BenchmarkAdd indexes episodes of 20 messages and 40 KB.
func BenchmarkAdd(b *testing.B) {
	store := sessions.New(sessions.Config{Path: filepath.Join(b.TempDir(), "search.db"), Journal: (&journal{}).open})
	view := sessions.View{Store: store, Task: &episode.Task{}}
	if _, _, err := view.Browse(b.Context(), 1, false); err != nil {
		b.Fatal(err)
	}
	text := ""
	for i := range 300 {
		text += fmt.Sprint("word", i, " ")
	}
	n := 0
	for b.Loop() {
		n++
		ep := play(fmt.Sprint(n), fmt.Sprint("prompt ", n), 0)
		for range 20 {
			ep.Messages = append(ep.Messages, episode.Message{Role: "tool", Content: text})
		}
		store.Add(ep)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDiscover searches 2,000 sessions of 22 messages, for a word of one and for a word of all.
func BenchmarkDiscover(b *testing.B) {
	store := sessions.New(sessions.Config{Path: filepath.Join(b.TempDir(), "search.db"), Journal: (&journal{}).open})
	view := sessions.View{Store: store, Task: &episode.Task{}}
	if _, _, err := view.Browse(b.Context(), 1, false); err != nil {
		b.Fatal(err)
	}
	text := ""
	for i := range 60 {
		text += fmt.Sprint("word", i, " ")
	}
	for n := range 2000 {
		ep := play(fmt.Sprint("task", n), fmt.Sprint("prompt", n), 0)
		for range 20 {
			ep.Messages = append(ep.Messages, episode.Message{Role: "assistant", Content: text})
		}
		store.Add(ep)
	}
	for _, query := range []string{"prompt77", "word7 word8"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if hits, _, err := view.Discover(b.Context(), sessions.Search{Query: query, Limit: 3}); err != nil || len(hits) == 0 {
					b.Fatal(hits, err)
				}
			}
		})
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}
