package tape_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"trajgen/tools/web/tape"
)

// page answers each request at once with 100 KB of a page of its own.
var page = transport(func(req *http.Request) (*http.Response, error) {
	body := strings.Repeat("<p>some paragraph of "+req.URL.Path+"</p>\n", 2500)
	return &http.Response{StatusCode: 200, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
})

// BenchmarkRecord keeps pages of 100 KB, with what the disk takes to make them durable.
func BenchmarkRecord(b *testing.B) {
	r := create(b, b.TempDir(), tape.Options{})
	defer closed(b, r)
	through := r.Play("a", 1).Transport("", "p", page)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ask(b, through, "GET", fmt.Sprintf("http://a.test/%d", i), "")
	}
}

// BenchmarkReplay answers with a page of 100 KB.
func BenchmarkReplay(b *testing.B) {
	dir := b.TempDir()
	r := create(b, dir, tape.Options{})
	ask(b, r.Play("a", 1).Transport("", "p", page), "GET", "http://a.test/", "")
	closed(b, r)
	through := open(b, dir, tape.ReplayOptions{}).Play("a").Transport("", "p")
	b.ReportAllocs()
	for b.Loop() {
		ask(b, through, "GET", "http://a.test/", "")
	}
}

// BenchmarkOpen opens a recording of 10,000 exchanges.
func BenchmarkOpen(b *testing.B) {
	const exchanges = 10_000
	empty := transport(func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		return &http.Response{StatusCode: 200, Header: header, Body: http.NoBody, Request: req}, nil
	})
	dir := b.TempDir()
	r := create(b, dir, tape.Options{})
	for i := range exchanges {
		through := r.Play(fmt.Sprint("e", i/20), 1).Transport("web_extract", "fetch/1", empty)
		ask(b, through, "GET", fmt.Sprintf("http://site.test/some/page/%d", i), "")
	}
	closed(b, r)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := open(b, dir, tape.ReplayOptions{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		open(b, dir, tape.ReplayOptions{})
	}
	runtime.KeepAlive(kept)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/exchanges, "heap-B/exchange")
}
