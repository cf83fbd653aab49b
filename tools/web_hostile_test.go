package tools_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/web"
)

// portable is a PDF file with one page that draws these commands.
func portable(commands string) string {
	var stream bytes.Buffer
	w := zlib.NewWriter(&stream)
	_, _ = io.WriteString(w, commands)
	_ = w.Close()
	return fmt.Sprintf("%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj\n"+
		"4 0 obj<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream endobj\n"+
		"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%%%EOF\n", stream.Len(), stream.Bytes())
}

// hostileAnswer is what a site says, and what a call that reads it comes to: a class of errors, or else a part of the text.
type hostileAnswer struct {
	contentType, body string
	serve             func(w http.ResponseWriter, r *http.Request) // in place of a body
	class, text       string
}

func hostileAnswers(t *testing.T) map[string]hostileAnswer {
	t.Helper()
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	if _, err := io.WriteString(packed, strings.Repeat("tide ", 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	const page, words = "<title>Tides</title><p>High water is at six.", "High water is at six."
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("junk ", 1<<12)); err != nil {
				return
			}
		}
	}
	document := portable("BT /F1 12 Tf 72 700 Td (" + words + ") Tj ET")
	return map[string]hostileAnswer{
		"a stream without an end": {contentType: "text/html", serve: endless, class: "too_large"},
		"a gzip bomb": {contentType: "text/html", class: "too_large", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}},
		"10 GB are announced": {contentType: "text/html", class: "too_large", serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10000000000")
			endless(w, r)
		}},
		"redirects without an end": {class: "redirects", serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}},
		"a length that is none": {class: "unavailable", serve: func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: NaN\r\n\r\n"+page)
				_ = conn.Close()
			}
		}},

		"a PDF":                           {contentType: "application/pdf", body: document, text: words},
		"a PDF that is HTML":              {contentType: "application/pdf", body: page, text: words},
		"a PDF that is garbage":           {contentType: "application/pdf", body: "%PDF-1.7\n" + strings.Repeat("\x00\xffgarbage(<[", 20_000), class: "malformed"},
		"a PDF that is cut":               {contentType: "application/pdf", body: document[:len(document)/3], class: "malformed"},
		"a PDF with a bomb":               {contentType: "application/pdf", body: portable(strings.Repeat(" ", 8<<20)), class: "no_text"},
		"a PDF that leads back to itself": {contentType: "application/pdf", body: strings.Replace(document, "[3 0 R]", "[2 0 R]", 1), class: "no_text"},

		"no such charset":            {contentType: "text/html; charset=klingon", body: page, text: words},
		"a charset that is open":     {contentType: "text/html; charset=\"\\", body: page, text: words},
		"a charset that scripts use": {contentType: "text/html; charset=utf-7", body: page, text: words},
		"a page of wrong bytes":      {contentType: "text/html; charset=utf-8", body: page + strings.Repeat("\xff\xfe\xc0", 1000), text: words},
		"UTF-16 of an odd length":    {contentType: "text/plain; charset=utf-16", body: "\xff\xfeH\x00i\x00!", text: "Hi"},

		"10 MB of one line":        {contentType: "text/plain", body: words + strings.Repeat("x", 10<<20-100), text: words},
		"a MB of one line of HTML": {contentType: "text/html", body: page + strings.Repeat("x", 1<<20), text: words},
		"deep HTML":                {contentType: "text/html", body: page + strings.Repeat("<div><ul><li>x", 20_000), text: words},
		"deep JSON":                {contentType: "application/json", body: `{"a":"` + words + `","b":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}", text: words},
		"deep XML":                 {contentType: "text/xml", body: "<rss><channel><item><description>" + words + strings.Repeat("<a>", 100_000), text: words},
		"an address of itself":     {contentType: "text/html", body: page + strings.Repeat(`<a href="?x=`+strings.Repeat("y", 3000)+`">z</a>`, 2000), text: words},
	}
}

// TestHostileWeb reads and crawls a site that answers in the worst of ways: each time the model learns what it needs, in a short
// result, and the process does not grow.
func TestHostileWeb(t *testing.T) {
	answers := hostileAnswers(t)
	listener, err := net.Listen("tcp4", "0.0.0.0:0") // so that each answer is of a host of its own, which need not be spared
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	urls, n := map[string]string{}, 1
	for name, a := range answers {
		n++
		urls[name] = fmt.Sprintf("http://127.0.0.%d:%d/%d", n, listener.Addr().(*net.TCPAddr).Port, n)
		serve := a.serve
		if serve == nil {
			serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, a.body) }
		}
		mux.HandleFunc(fmt.Sprintf("/%d", n), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", a.contentType)
			serve(w, r)
		})
		if a.class == "redirects" {
			mux.HandleFunc(fmt.Sprintf("/%dx", n), serve)
			for i := 2; i < 10; i++ {
				mux.HandleFunc(fmt.Sprintf("/%d%s", n, strings.Repeat("x", i)), serve)
			}
		}
	}
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)

	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, "native", err)
	t.Cleanup(func() { backend.Close() })
	file := run.Default()
	file.Web = web.Settings{AllowPrivate: []string{"127.0.0.0/8"}}
	w, err := run.OpenWeb(t.Context(), &file, func() (sandbox.Backend, error) { return backend, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	t.Run("answers", func(t *testing.T) {
		for name, want := range answers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := surfing(t, w.View(name, 1))
				for tool, give := range map[string]args{"web_extract": {"urls": []string{urls[name]}}, "web_crawl": {"url": urls[name], "limit": 2}} {
					call := e.call(tool, give)
					if call.ErrorClass != want.class || !strings.Contains(call.Result, want.text) {
						t.Errorf("%s: %s, class %q: %.300s", tool, call.Status, call.ErrorClass, call.Result)
					}
					if len(call.Result) > 40_000 || !json.Valid([]byte(call.Result)) || want.class != "" && len(call.Result) > 1000 {
						t.Errorf("%s: a result of %d bytes: %.300s", tool, len(call.Result), call.Result)
					}
				}
			})
		}
	})
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 512<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
}

// TestHostileWebArguments gives numbers and texts that no reader means.
func TestHostileWebArguments(t *testing.T) {
	server := site(t)
	e := surfing(t, openWeb(t, settings(server, "")).View("ep", 1))
	for _, tt := range []struct {
		tool, give string
		want       episode.CallStatus
	}{
		{"web_extract", `{"urls":[%q],"offset":-1}`, episode.CallInvalidArguments},
		{"web_extract", `{"urls":[%q],"offset":"NaN"}`, episode.CallInvalidArguments},
		{"web_extract", `{"urls":[%q],"offset":1e300}`, episode.CallInvalidArguments},
		{"web_extract", `{"urls":[%q],"offset":9223372036854775807}`, episode.CallOK},
		{"web_extract", `{"urls":[]}`, episode.CallInvalidArguments},
		{"web_extract", `{"urls":["%s` + strings.Repeat("x", 1<<20) + `"]}`, episode.CallError},
		{"web_extract", `{"urls":["%s\u0000"]}`, episode.CallError},
		{"web_crawl", `{"url":%q,"limit":0}`, episode.CallInvalidArguments},
		{"web_crawl", `{"url":%q,"limit":1e9}`, episode.CallInvalidArguments},
		{"web_crawl", `{"url":%q,"limit":1,"depth":-3}`, episode.CallInvalidArguments},
		{"web_crawl", `{"url":%q,"limit":1,"include":["[` + strings.Repeat("*", 10_000) + `"]}`, episode.CallError},
		{"web_search", `{"query":"lamp %s","limit":-1}`, episode.CallInvalidArguments},
		{"web_search", `{"query":"lamp %s","limit":"Infinity"}`, episode.CallInvalidArguments},
		{"web_search", `{"query":"lamp %s","after":"2026-99-99"}`, episode.CallError},
	} {
		give := fmt.Sprintf(tt.give, server.URL+"/next")
		call := e.session.Call(t.Context(), registry.Request{ID: "call", Name: tt.tool, Arguments: give})
		if call.Status != tt.want || len(call.Result) > 5000 || !json.Valid([]byte(call.Result)) {
			t.Errorf("%s %.80s: %s, want %s: %d bytes, %.300s", tt.tool, give, call.Status, tt.want, len(call.Result), call.Result)
		}
	}
}
