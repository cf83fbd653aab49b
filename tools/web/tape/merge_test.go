package tape_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/tools/web/tape"
)

// TestMerge makes one recording of two, of which one was resumed, and both have an episode.
func TestMerge(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %d", r.URL.Path, asked.Add(1))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	first, second, both := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "both")
	record := func(dir, episode string, more bool) string {
		t.Helper()
		r := create(t, dir, tape.Options{More: more})
		defer closed(t, r)
		return ask(t, r.Play(episode, 1).Transport("call", "fetch 1", live(t)), "GET", server.URL+"/page", "")
	}
	record(first, "shared", false)
	want := map[string]string{"resumed": record(first, "resumed", true), "shared": record(second, "shared", false), "own": record(second, "own", true)}
	if err := tape.Merge(both, []string{first, second}, tape.Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	merged := open(t, both, tape.ReplayOptions{})
	if err := merged.Verify(); err != nil {
		t.Error(err)
	}
	for episode, answer := range want {
		if got := ask(t, merged.Play(episode).Transport("call", "fetch 1"), "GET", server.URL+"/page", ""); got != answer {
			t.Errorf("%s: got %q, want %q", episode, got, answer)
		}
	}
	if err := tape.Merge(both, []string{first}, tape.Options{Now: time.Now}); err == nil {
		t.Error("a recording was written into another one")
	}
	if err := tape.Merge(filepath.Join(dir, "none"), []string{dir}, tape.Options{Now: time.Now}); err == nil {
		t.Error("what is not a recording was merged")
	}
}
