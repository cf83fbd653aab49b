package corpus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"trajgen/tools/web/corpus"
)

// write puts files into a folder of the test's own.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pages stands in for extraction: the title is what is in <title>, the text is the rest.
func pages(_ context.Context, body []byte, contentType, url string) (title, text string, err error) {
	before, rest, _ := strings.Cut(string(body), "<title>")
	title, rest, ok := strings.Cut(rest, "</title>")
	if !ok {
		return "", "", errors.New("no title")
	}
	return title, fmt.Sprintf("%s%s (%s of %s)", before, rest, contentType, url), nil
}

// read collects documents, with the folder cut out of places, and everything that went wrong.
func read(t *testing.T, s corpus.Source, dir string, names ...string) (documents []corpus.Document, failed error) {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name))
	}
	for d, err := range s.Read(t.Context(), paths...) {
		if err != nil {
			failed = errors.Join(failed, errors.New(strings.ReplaceAll(err.Error(), dir+"/", "")))
			continue
		}
		d.Place = strings.TrimPrefix(d.Place, dir+"/")
		documents = append(documents, d)
	}
	return documents, failed
}

func TestReadFolder(t *testing.T) {
	dir := write(t, map[string]string{
		"a/index.md": "intro\n\n# The Harbour #\n\ntext", "a/plain.txt": "\ufeffone\ntwo", "b/page.html": "<title>Page</title>body",
		"rows.jsonl": `{"id": "r1", "title": "T", "text": "x", "url": "https://x.test/1", "more": [1]}` + "\n\n" + `{"id": 7, "contents": "\"Title\"\nrest\nof it"}`,
		"chart.png":  "\x89PNG", ".git/config.txt": "hidden", "z.markdown": "no heading",
	})
	var other []string
	got, err := read(t, corpus.Source{HTML: pages, Other: func(place string) { other = append(other, filepath.Base(place)) }}, dir, "")
	want := []corpus.Document{
		{ID: "a/index.md", Title: "The Harbour", Text: "intro\n\n# The Harbour #\n\ntext", Place: "a/index.md"},
		{ID: "a/plain.txt", Title: "plain", Text: "one\ntwo", Place: "a/plain.txt"},
		{ID: "b/page.html", Title: "Page", Text: "body (text/html of )", Place: "b/page.html"},
		{ID: "r1", Title: "T", Text: "x", URL: "https://x.test/1", Place: "rows.jsonl:1"},
		{ID: "7", Title: "Title", Text: "rest\nof it", Place: "rows.jsonl:3"},
		{ID: "z.markdown", Title: "z", Text: "no heading", Place: "z.markdown"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !slices.Equal(other, []string{"chart.png"}) {
		t.Errorf("others: %v", other)
	}
}

type article struct {
	Key   int64   `parquet:"_id"`
	Name  *string `parquet:"name,optional"`
	Body  string  `parquet:"body"`
	Score float64 `parquet:"score"`
}

func TestReadRows(t *testing.T) {
	name := "Müller"
	var file bytes.Buffer
	if err := parquet.Write(&file, []article{{1, &name, "first", 0.5}, {2, nil, "second", 1}}, parquet.Compression(&parquet.Zstd)); err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{"p.parquet": file.String(), "t.csv": "id,text\nx,first\n", "packed.jsonl.gz": gzipped(t, `{"url": "https://x.test/", "text": ""}`)})
	got, err := read(t, corpus.Source{Map: map[string]string{"id": "_id", "text": "body"}}, dir, "p.parquet")
	want := []corpus.Document{{ID: "1", Text: "first", Place: "p.parquet: row 1"}, {ID: "2", Text: "second", Place: "p.parquet: row 2"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Parquet: %v (-want +got):\n%s", err, diff)
	}
	got, err = read(t, corpus.Source{}, dir, "t.csv", "packed.jsonl.gz")
	want = []corpus.Document{{ID: "x", Text: "first", Place: "t.csv:2"}, {ID: "https://x.test/", URL: "https://x.test/", Place: "packed.jsonl.gz:1"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("CSV and packed JSON Lines: %v (-want +got):\n%s", err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name   string
		source corpus.Source
		files  map[string]string
		want   string
	}{
		{"a broken line", corpus.Source{}, map[string]string{"x.jsonl": "{\"id\":\"a\",\"text\":\"t\"}\n{"}, "x.jsonl:2: invalid JSON"},
		{"no text", corpus.Source{}, map[string]string{"x.jsonl": `{"id":"a","body":"t"}`}, "x.jsonl:1: it has neither text nor contents (have body, id)"},
		{"no id", corpus.Source{}, map[string]string{"x.jsonl": `{"_id":"a","text":"t"}`}, "--map id=_id"},
		{"a text that is a list", corpus.Source{}, map[string]string{"x.jsonl": `{"id":"a","text":["t"]}`}, "x.jsonl:1: text: want a text"},
		{"a column that is not there", corpus.Source{Map: map[string]string{"title": "name"}}, map[string]string{"x.jsonl": `{"id":"a","text":"t"}`}, `no column "name"`},
		{"an unknown field", corpus.Source{Map: map[string]string{"body": "text"}}, map[string]string{"x.jsonl": ``}, `no field "body" (have id, title, url, text)`},
		{"no UTF-8", corpus.Source{}, map[string]string{"x.txt": "\xff"}, "x.txt: the text is not UTF-8"},
		{"a large file", corpus.Source{}, map[string]string{"x.txt": strings.Repeat("x", corpus.MaxDocument+1)}, "x.txt: it is larger than 16 MiB"},
		{"a page without extraction", corpus.Source{}, map[string]string{"x.html": "<p>"}, "x.html: it is a page in HTML"},
		{"a page that fails", corpus.Source{HTML: pages}, map[string]string{"x.html": "<p>"}, "x.html: no title"},
		{"no documents", corpus.Source{}, map[string]string{"x.png": ""}, "there are no documents below this folder"},
		{"damaged Parquet", corpus.Source{}, map[string]string{"x.parquet": "PAR1 and no more"}, "damaged or cut off"},
		{"a WARC that is none", corpus.Source{}, map[string]string{"x.warc": "HTTP/1.1 200 OK\r\n\r\n"}, "x.warc: record 1: it begins with"},
		{"a WARC that is cut off", corpus.Source{}, map[string]string{"x.warc": "WARC/1.0\r\nContent-Length: 10\r\n\r\nabc"}, "x.warc: record 1: the file is cut off"},
		{"a WARC with half a header", corpus.Source{}, map[string]string{"x.warc": "WARC/1.0\r\nContent-Le"}, "x.warc: record 1: the file is cut off"},
		{"a WARC without a length", corpus.Source{}, map[string]string{"x.warc": "WARC/1.0\r\nA: b\r\n\r\n"}, "Content-Length"},
		{"a WARC with endless fields", corpus.Source{}, map[string]string{"x.warc": "WARC/1.0\r\n" + strings.Repeat("a: b\r\n", 300)}, "more than 200 fields"},
		{"a WARC with an endless line", corpus.Source{}, map[string]string{"x.warc": "WARC/1.0\r\na: " + strings.Repeat("b", 1<<17)}, "a line that is too long"},
		{"a packed WARC that is damaged", corpus.Source{}, map[string]string{"x.warc.gz": "\x1f\x8b\x08\x00damaged"}, "x.warc.gz"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := read(t, tt.source, write(t, tt.files), ""); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := read(t, corpus.Source{}, t.TempDir(), "none.jsonl"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestReadSkips holds that reading goes on behind a document that cannot be read, when that is wanted.
func TestReadSkips(t *testing.T) {
	dir := write(t, map[string]string{
		"a.jsonl": "{\"id\":\"a\",\"text\":\"t\"}\n{\n{\"id\":\"\",\"text\":\"t\"}\n{\"text\":1}\n{\"id\":\"b\",\"text\":\"t\"}", "b.txt": "\xff", "c.txt": "fine",
	})
	var bad []string
	got, err := read(t, corpus.Source{Bad: func(err error) { bad = append(bad, strings.ReplaceAll(err.Error(), dir+"/", "")) }}, dir, "")
	if err != nil || len(got) != 3 {
		t.Errorf("%d documents, %v", len(got), err)
	}
	for i, want := range []string{"a.jsonl:2: ", "a.jsonl:3: ", "a.jsonl:4: ", "b.txt: "} {
		if i >= len(bad) || !strings.HasPrefix(bad[i], want) {
			t.Errorf("left out %q, want %q at %d", bad, want, i)
		}
	}
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// warcRecord is one as crawlers write it.
func warcRecord(kind, id, uri, contentType, content string) string {
	return fmt.Sprintf("WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Target-URI: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n",
		kind, id, uri, contentType, len(content), content)
}

func TestReadWARC(t *testing.T) {
	var squeezed, small bytes.Buffer
	w := brotli.NewWriter(&squeezed)
	_, _ = w.Write([]byte("<title>Brotli</title>b"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&small)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write([]byte("zstd"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	http := func(id, status, header, body string) string {
		return warcRecord("response", id, "https://x.test/"+id, "application/http; msgtype=response",
			"HTTP/1.1 "+status+"\r\n"+header+"\r\n\r\n"+body)
	}
	records := []string{
		warcRecord("warcinfo", "0", "", "application/warc-fields", "software: test\r\n"),
		warcRecord("request", "0", "https://x.test/1", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n"),
		http("1", "200 OK", "Content-Type: text/html; charset=UTF-8", "<title>One</title>body"),
		http("2", "200 OK", "Content-Type: text/plain; charset=iso-8859-1\r\nTransfer-Encoding: chunked", "3\r\ncaf\r\n1\r\n\xe9\r\n0\r\n\r\n"),
		http("3", "200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip", gzipped(t, "<title>Three</title>gz")),
		http("4", "200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip", "<title>Four</title>unpacked before"),
		http("5", "200 OK", "Content-Type: text/html\r\nContent-Encoding: br", squeezed.String()),
		http("6", "200 OK", "Content-Type: text/plain\r\nContent-Encoding: zstd", small.String()),
		http("7", "404 Not Found", "Content-Type: text/html", "<title>Gone</title>"),
		http("8", "200 OK", "Content-Type: image/png", "\x89PNG"),
		warcRecord("response", "9", "dns:x.test", "text/dns", "x.test 1 IN A 192.0.2.1"),
		warcRecord("conversion", "10", "https://x.test/10", "text/plain", "of Common Crawl"),
		warcRecord("resource", "11", "<https://x.test/11>", "text/html", "<title>Resource</title>r"),
		warcRecord("revisit", "12", "https://x.test/1", "application/http; msgtype=response", "HTTP/1.1 200 OK\r\n\r\n"),
	}
	document := func(n int, title, text string) corpus.Document {
		return corpus.Document{ID: fmt.Sprintf("urn:uuid:%d", n), Title: title, URL: fmt.Sprintf("https://x.test/%d", n), Text: text}
	}
	want := []corpus.Document{
		document(1, "One", "body (text/html; charset=UTF-8 of https://x.test/1)"), document(2, "https://x.test/2", "café"),
		document(3, "Three", "gz (text/html of https://x.test/3)"), document(4, "Four", "unpacked before (text/html of https://x.test/4)"),
		document(5, "Brotli", "b (text/html of https://x.test/5)"), document(6, "https://x.test/6", "zstd"),
		document(10, "https://x.test/10", "of Common Crawl"), document(11, "Resource", "r (text/html of https://x.test/11)"),
	}
	var packed strings.Builder
	for _, one := range records {
		packed.WriteString(gzipped(t, one))
	}
	dir := write(t, map[string]string{"plain.warc": strings.Join(records, ""), "packed.warc.gz": packed.String()})
	for _, name := range []string{"plain.warc", "packed.warc.gz"} {
		others := 0
		got, err := read(t, corpus.Source{HTML: pages, Other: func(string) { others++ }}, dir, name)
		for i := range got {
			if !strings.HasPrefix(got[i].Place, name+": record ") {
				t.Errorf("place %q", got[i].Place)
			}
			got[i].Place = ""
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" || others != 2 {
			t.Errorf("%s: %v, %d others (-want +got):\n%s", name, err, others, diff)
		}
	}
	// What is wrong with one page is not wrong with the file.
	bad := write(t, map[string]string{"x.warc": http("1", "200 OK", "Content-Type: text/html\r\nContent-Encoding: rot13", "x") +
		http("2", "200 OK", "Content-Type: text/html\r\nContent-Encoding: br", "\xff\xff") + http("3", "OK", "", "") +
		http("4", "200 OK", "Content-Type: text/plain; charset=klingon", "x") + http("5", "200 OK", "Content-Type: text/plain", "good")})
	var left []error
	got, err := read(t, corpus.Source{HTML: pages, Bad: func(err error) { left = append(left, err) }}, bad, "x.warc")
	if err != nil || len(left) != 4 || len(got) != 1 || got[0].Text != "good" {
		t.Errorf("%v, left out %v, have %v", err, left, got)
	}
}

// FuzzWARC has no answer to check but that there is one.
func FuzzWARC(f *testing.F) {
	f.Add([]byte(warcRecord("response", "1", "https://x.test/", "application/http", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>a</title>b")))
	f.Add([]byte(gzipped(f, warcRecord("conversion", "1", "https://x.test/", "text/plain; charset=utf-16", "ab"))))
	f.Add([]byte("WARC/1.0\r\nContent-Length: 9223372036854775807\r\nWARC-Type: response\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n"))
	dir := f.TempDir()
	path := filepath.Join(dir, "x.warc")
	f.Fuzz(func(t *testing.T, file []byte) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		for d, err := range (corpus.Source{HTML: pages, Bad: func(error) {}}).Read(t.Context(), path) {
			if err == nil && (d.ID == "" || d.Place == "") {
				t.Errorf("a document without id or place: %+v", d)
			}
		}
	})
}
