package tape_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/tools/web/tape"
)

// TestCache asks for the same again: at once, later, too late, and where an answer is not to be kept.
func TestCache(t *testing.T) {
	var asked atomic.Int64
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/none":
			w.WriteHeader(http.StatusNotFound)
		case "/slow":
			arrived <- struct{}{}
			<-release
		case "/broken":
			w.Header().Set("Content-Length", "100")
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d%s", n, body)
	}))
	t.Cleanup(server.Close)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	reopen := func() *tape.Cache {
		t.Helper()
		cache, err := tape.OpenCache(dir, time.Hour, tape.Options{Now: func() time.Time { return now }, Secrets: []string{"sk-secret"}})
		if err != nil {
			t.Fatal(err)
		}
		return cache
	}
	to := reopen().Transport("fetch 1", live(t))
	get := func(path string) string { t.Helper(); return ask(t, to, "GET", server.URL+path, "") }
	same := func(path, want string) {
		t.Helper()
		if got := get(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	same("/a", "200 1")
	same("/a#there", "200 1")
	if got := ask(t, to, "POST", server.URL+"/a", "sk-secret?"); got != "200 2sk-secret?" {
		t.Errorf("the live answer: %q", got)
	}
	if got := ask(t, to, "POST", server.URL+"/a", "sk-secret?"); got != "200 2?" {
		t.Errorf("the kept answer: %q", got)
	}
	same("/none", "404 3")
	same("/none", "404 3")
	same("/busy", "429 4")
	same("/busy", "429 5")
	for range 2 {
		if got := get("/broken"); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "unavailable") {
			t.Errorf("a broken answer: %q", got)
		}
	}
	if n, hits := to.Stats(); n != 10 || hits != 3 || asked.Load() != 7 {
		t.Errorf("%d requests, %d hits, %d of the server", n, hits, asked.Load())
	}

	to = reopen().Transport("fetch 1", live(t))
	same("/a", "200 1")
	if got := ask(t, reopen().Transport("fetch 2", live(t)), "GET", server.URL+"/a", ""); got != "200 8" {
		t.Errorf("another version of us: %q", got)
	}
	now = now.Add(2 * time.Hour)
	same("/a", "200 9")

	// Equal requests at one time are one.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { same("/slow", "200 10") })
		if i == 0 {
			<-arrived
		}
	}
	close(release)
	all.Wait()

	// A damaged file is not used.
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".answer") {
			damaged++
			data, readErr := os.ReadFile(path)
			if err = readErr; err == nil {
				err = os.WriteFile(path, append(data[:len(data)-3], "abc"...), 0o644)
			}
		}
		return err
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d files, %v", damaged, err)
	}
	same("/a", "200 11")
	same("/a", "200 11")

	// What is too old is removed at the next opening, and nothing else.
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		t.Helper()
		reopen()
		files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	now = time.Now().Add(time.Minute)
	if files := left(); len(files) < damaged {
		t.Errorf("young files are gone: %v are left", files)
	}
	now = time.Now().Add(2 * time.Hour)
	if files := left(); len(files) > 0 {
		t.Errorf("left %v", files)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes")); err != nil {
		t.Error(err)
	}
}
