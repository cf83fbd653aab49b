package tape_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/tools/web/tape"
)

// FuzzOpen has the index of a recording be anything.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	r := create(f, dir, tape.Options{})
	for _, path := range []string{"/1", "/2"} {
		ask(f, r.Play("a", 1).Transport("", "p", page), "POST", "http://a.test"+path, `{"q":1}`)
	}
	closed(f, r)
	seed := bytesOf(f, filepath.Join(dir, "index"))
	f.Add(seed, "/1")
	f.Add(seed[:len(seed)/2], "/2")
	f.Fuzz(func(t *testing.T, index []byte, path string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "index"), index, 0o644); err != nil {
			t.Fatal(err)
		}
		played, err := tape.Open(dir, tape.ReplayOptions{Loose: true})
		if err != nil {
			return
		}
		defer played.Close()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://a.test"+path, strings.NewReader(`{"q":1}`))
		if err != nil {
			return
		}
		if resp, err := played.Play("a").Transport("", "p").RoundTrip(req); err == nil {
			resp.Body.Close()
		}
		if stats := played.Stats(); stats.Hits+len(stats.Misses) != 1 {
			t.Errorf("stats %+v", stats)
		}
	})
}

// FuzzRequest has a URL be anything: what was recorded for it is found again.
func FuzzRequest(f *testing.F) {
	f.Add("http://A.test:80/%c3?b=%2f&_=1#x", `{"a":1}`)
	f.Add("https://[::1]:443/?api_key=1&&=&utm_x", "{")
	f.Fuzz(func(t *testing.T, url, body string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			return
		}
		dir := t.TempDir()
		r := create(t, dir, tape.Options{})
		answer := transport(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		})
		resp, err := r.Play("a", 1).Transport("", "p", answer).RoundTrip(req)
		if err != nil {
			return // too long
		}
		resp.Body.Close()
		closed(t, r)
		req, _ = http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if _, err := open(t, dir, tape.ReplayOptions{}).Play("b").Transport("", "p").RoundTrip(req); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	})
}
