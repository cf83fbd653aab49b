package tape_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/tools/web/tape"
)

// TestGoesOn records an episode again that an earlier process had begun: what came later counts.
func TestGoesOn(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	record := func(o tape.Options, asked ...string) {
		t.Helper()
		r := create(t, dir, o)
		defer closed(t, r)
		for _, path := range asked {
			episode, path, _ := strings.Cut(path, " ")
			ask(t, r.Play(episode, 1).Transport("", "p", live(t)), "GET", server.URL+path, "")
		}
	}
	record(tape.Options{}, "a /1", "a /2", "b /1")
	refused(t, dir, tape.Options{Now: time.Now}, "holds 3 exchanges of another run: --resume goes on")
	record(tape.Options{More: true}, "a /1")
	played := open(t, dir, tape.ReplayOptions{})
	for _, tt := range []struct{ episode, want string }{{"a", "200 /1  3"}, {"b", "200 /1  2"}, {"z", "200 /1  0"}} {
		equal(t, tt.episode, ask(t, played.Play(tt.episode).Transport("", "p"), "GET", server.URL+"/1", ""), tt.want)
	}
}

// refused holds that a recording cannot be opened for writing, and what is said about it.
func refused(t *testing.T, dir string, o tape.Options, want string) {
	t.Helper()
	if _, err := tape.Create(dir, o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Create: %v, want %s", err, want)
	}
}

// TestOneWriter holds that two processes do not record into one directory.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	refused(t, dir, tape.Options{More: true, Now: time.Now}, "is being written by")
	closed(t, r)
}

// TestKilled cuts the index after each byte: what was whole before is answered, and a recorder goes on behind it.
func TestKilled(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	through := r.Play("a", 1).Transport("", "p", live(t))
	index := filepath.Join(dir, "index")
	var ends []int
	for path := range 3 {
		ask(t, through, "GET", fmt.Sprintf("%s/%d", server.URL, path), "")
		ends = append(ends, len(bytesOf(t, index)))
	}
	closed(t, r)
	whole := bytesOf(t, index)
	for cut := range len(whole) {
		if err := os.WriteFile(index, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if end <= cut {
				want++
			}
		}
		played := open(t, dir, tape.ReplayOptions{})
		if exchanges, _ := played.Size(); exchanges != want || played.Damage() != nil {
			t.Fatalf("cut at %d: %d exchanges, want %d; damage %v", cut, exchanges, want, played.Damage())
		}
		played.Close()
		if cut%50 != 0 {
			continue
		}
		r := create(t, dir, tape.Options{More: true})
		ask(t, r.Play("b", 1).Transport("", "p", live(t)), "GET", server.URL+"/new", "")
		closed(t, r)
		played = open(t, dir, tape.ReplayOptions{})
		if exchanges, _ := played.Size(); exchanges != want+1 || played.Damage() != nil {
			t.Fatalf("gone on at %d: %d exchanges, want %d; damage %v", cut, exchanges, want+1, played.Damage())
		}
		played.Close()
	}
}

func bytesOf(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamage holds that damage is named where it is met, and costs what lies there alone.
func TestDamage(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	through := r.Play("a", 1).Transport("", "p", live(t))
	for path := range 4 {
		ask(t, through, "GET", fmt.Sprintf("%s/%d", server.URL, path), "")
	}
	closed(t, r)
	index := filepath.Join(dir, "index")
	data := bytesOf(t, index)
	at := bytes.Index(data, []byte(server.URL+"/1"))
	data[at] ^= 1
	if err := os.WriteFile(index, data, 0o644); err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	if err != nil || len(blobs) != 4 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}
	played := open(t, dir, tape.ReplayOptions{})
	if err := played.Damage(); err == nil || !strings.Contains(err.Error(), "index is damaged from byte") {
		t.Errorf("damage %v", err)
	}
	get := func(path int) string {
		return ask(t, played.Play("a").Transport("", "p"), "GET", fmt.Sprintf("%s/%d", server.URL, path), "")
	}
	equal(t, "what is damaged", get(1), "replay_miss 1 the recording lacks GET "+server.URL+"/1")
	equal(t, "what follows it", get(2), "200 /2  2")
	refused(t, dir, tape.Options{More: true, Now: time.Now}, "record into another directory")
	for _, blob := range blobs {
		if err := os.WriteFile(blob, []byte("nonsense"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(2); !strings.HasPrefix(got, "recording 2 the body ") || !strings.Contains(got, "is damaged") {
		t.Errorf("a damaged body: %s", got)
	}
	for _, blob := range blobs {
		if err := os.Remove(blob); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(2); !strings.HasPrefix(got, "recording 2 the body ") || !strings.Contains(got, "is missing") {
		t.Errorf("a body that is gone: %s", got)
	}
}

// TestDiskFull holds that a recorder that cannot write answers nothing any more.
func TestDiskFull(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	if err := os.WriteFile(filepath.Join(dir, "blobs"), nil, 0o644); err != nil { // where a directory should be
		t.Fatal(err)
	}
	through := r.Play("a", 1).Transport("", "p", live(t))
	for _, path := range []string{"/1", "/2"} {
		if got := ask(t, through, "GET", server.URL+path, ""); !strings.Contains(got, "recording 2 keep a body") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if err := r.Close(); err == nil {
		t.Error("Close says nothing")
	}
}

// TestDigest holds that a recording is identified by its exchanges, and not by their order.
func TestDigest(t *testing.T) {
	server := fixed(t)
	record := func(asked ...string) string {
		t.Helper()
		dir := t.TempDir()
		r := create(t, dir, tape.Options{})
		for _, path := range asked {
			episode, path, _ := strings.Cut(path, " ")
			ask(t, r.Play(episode, 1).Transport("", "p", live(t)), "GET", server+path, "")
		}
		closed(t, r)
		return open(t, dir, tape.ReplayOptions{}).Digest()
	}
	first := record("a /1", "b /2")
	if again := record("b /2", "a /1"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	for _, other := range [][]string{{"a /1"}, {"a /1", "b /1"}, {"a /1", "c /2"}, {"a /1", "b /2", "b /2"}} {
		if record(other...) == first {
			t.Errorf("%v has the same digest", other)
		}
	}
}

// fixed answers with the path, at no time.
func fixed(t testing.TB) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		fmt.Fprint(w, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCalls holds that each call gets its own answers, whatever other calls of the episode ask for meanwhile.
func TestCalls(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	play := r.Play("a", 1)
	for _, call := range []string{"first", "second"} {
		ask(t, play.Transport(call, "p", live(t)), "GET", server.URL+"/1", "")
	}
	closed(t, r)
	played := open(t, dir, tape.ReplayOptions{}).Play("a")
	for _, tt := range []struct{ call, want string }{{"second", "200 /1  1"}, {"first", "200 /1  0"}, {"second", "200 /1  1"}, {"third", "200 /1  0"}} {
		equal(t, tt.call, ask(t, played.Transport(tt.call, "p"), "GET", server.URL+"/1", ""), tt.want)
	}
}
