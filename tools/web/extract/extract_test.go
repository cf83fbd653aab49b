package extract_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// read makes the page of a body that came from this address.
func read(t testing.TB, address, contentType, body string) source.Page {
	t.Helper()
	return extract.New(extract.Config{}).Page(t.Context(), source.Page{URL: address}, []byte(body), contentType)
}

// html makes the page of a body in HTML.
func html(t testing.TB, body string) source.Page {
	t.Helper()
	return read(t, "https://www.example.com/a/page", "text/html; charset=utf-8", body)
}

// TestPages holds what is made of pages as they are found.
func TestPages(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.*ml")
	if err != nil || len(inputs) < 15 {
		t.Fatalf("%d pages, %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			body, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			got := show(read(t, "https://www.example.com/2026/03/page", "", string(body)))
			golden := input + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +now; make golden refreshes it):\n%s", diff)
			}
		})
	}
}

// show writes a page for people.
func show(p source.Page) string {
	var out strings.Builder
	fmt.Fprintf(&out, "type: %s\ntitle: %s\nextractor: %s\nbytes: %d\ndigest: %s\n", p.Type, p.Title, p.Extractor, p.Bytes, p.Digest)
	if p.Error != nil {
		fmt.Fprintf(&out, "error: %s: %s\n", p.Error.Class, p.Error.Message)
	}
	fmt.Fprintf(&out, "\n%s\n\nlinks:\n", p.Text)
	for _, link := range p.Links {
		fmt.Fprintf(&out, "%s %s\n", link.URL, link.Text)
	}
	return out.String()
}

func TestForms(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"
	tests := []struct {
		name, contentType, body string
		media, extractor, text  string // text is a part of it
		class                   string
		blame                   source.Blame
	}{
		{name: "JSON", contentType: "application/json", body: `{"b":[1,{}],"a":"x\"y: {1,2}"}`, media: "application/json",
			extractor: "json",
			text:      "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": \"x\\\"y: {1,2}\"\n}"},
		{name: "JSON without a type", body: " [1.50, null]", media: "application/json", extractor: "json",
			text: "[\n  1.50,\n  null\n]"},
		{name: "JSON as text", contentType: "text/plain; charset=utf-8", body: `{"a":1}`, media: "application/json",
			extractor: "json", text: "{\n  \"a\": 1\n}"},
		{name: "broken JSON", contentType: "application/json", body: `{"a":1,`, media: "application/json", extractor: "json",
			text: `{"a":1,`},
		{name: "JSON of another name", contentType: "application/ld+json", body: `{"a":[]}`, media: "application/ld+json",
			extractor: "json", text: "{\n  \"a\": []\n}"},
		{name: "text", contentType: "text/plain", body: "one\r\ntwo\rthree\n", media: "text/plain", extractor: "text",
			text: "one\ntwo\nthree"},
		{name: "a word that is a magic number", contentType: "text/plain", body: "BM is a state, GIF89a is a format",
			media: "text/plain", extractor: "text", text: "BM is"},
		{name: "a stray control character", contentType: "text/plain", body: strings.Repeat("words and words ", 9) + "\x00.",
			media: "text/plain", extractor: "text", text: "words"},
		{name: "Markdown", contentType: "text/markdown", body: "# Title *x*\n\nText", media: "text/markdown",
			extractor: "text", text: "# Title *x*\n\nText"},
		{name: "CSV", contentType: "text/csv", body: "a,b\n1,2\n", media: "text/csv", extractor: "text", text: "a,b\n1,2"},
		{name: "YAML", contentType: "application/x-yaml", body: "a: 1", media: "application/x-yaml", extractor: "text",
			text: "a: 1"},
		{name: "HTML as text", contentType: "text/plain", body: "<!DOCTYPE html><p>words", media: "text/html",
			extractor: "body", text: "words"},
		{name: "HTML as octets", contentType: "application/octet-stream", body: "<html><p>words", media: "text/html",
			extractor: "body", text: "words"},
		{name: "XHTML as XML", contentType: "text/xml",
			body:  `<?xml version="1.0"?><!DOCTYPE html PUBLIC "x" "y"><html xmlns="z"><body><p>words</p></body></html>`,
			media: "text/html", extractor: "body", text: "words"},
		{name: "HTML in UTF-16", body: "\xff\xfe<\x00p\x00>\x00h\x00i\x00", media: "text/html", extractor: "body", text: "hi"},
		{name: "XML", contentType: "application/xml", body: "<a><b>1</b></a>", media: "application/xml", extractor: "text",
			text: "<a><b>1</b></a>"},
		{name: "a feed as XML", contentType: "text/xml", body: "<rss><channel><item><title>x</title></item></channel></rss>",
			media: "text/xml", extractor: "feed", text: "## x"},
		{name: "an RDF feed",
			body: `<?xml version="1.0"?><rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/">` +
				`<channel><title>c</title></channel><item><title>x</title><link>http://a.example/</link></item></rdf:RDF>`,
			media: "application/rdf+xml", extractor: "feed", text: "## [x](http://a.example/)"},
		{name: "half a feed", contentType: "application/rss+xml", body: "<rss><channel><item><title>x</title></item><item><ti",
			media: "application/rss+xml", extractor: "feed", text: "## x"},
		{name: "an empty feed", contentType: "application/atom+xml", body: "<feed/>", media: "application/atom+xml",
			extractor: "feed", text: "no entries"},
		{name: "PDF and not", contentType: "application/pdf", body: "<html><p>Not found", media: "text/html",
			extractor: "body", text: "Not found"},
		{name: "PDF", contentType: "text/html", body: "%PDF-1.7\n", media: "application/pdf", class: source.NoText,
			blame: source.Operator, text: "pdftotext"},
		{name: "picture", contentType: "image/png", body: png, media: "image/png", class: source.NoText,
			text: "vision_analyze"},
		{name: "picture without a type", body: png, media: "image/png", class: source.NoText, text: "20 bytes"},
		{name: "picture as HTML", contentType: "text/html", body: png, media: "image/png", class: source.NoText,
			text: "vision_analyze"},
		{name: "SVG", body: "<?xml version='1.0'?><!-- x --><svg xmlns='y'><text>no</text></svg>", media: "image/svg+xml",
			class: source.NoText, text: "image/svg+xml"},
		{name: "SVG as XML", contentType: "text/xml", body: "<svg xmlns='y'/>", media: "image/svg+xml", class: source.NoText,
			text: "browser"},
		{name: "zip", contentType: "application/octet-stream", body: "PK\x03\x04\x14\x00\x00\x00\x08\x00",
			media: "application/zip", class: source.NoText, text: "application/zip (10 bytes)"},
		{name: "octets", body: "\x00\x01\x02\x03abc", media: "application/octet-stream", class: source.NoText, text: "7 bytes"},
		{name: "film", contentType: "video/mp4", body: "....", media: "video/mp4", class: source.NoText, text: "video/mp4"},
		{name: "nothing", contentType: "text/html", body: " \n", media: "text/html", class: source.NoText, text: "empty"},
		{name: "no text", contentType: "text/html", body: "<html><body><div></div><script>x()</script>", media: "text/html",
			class: source.NoText, text: "scripts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, "https://www.example.com/", tt.contentType, tt.body)
			if got.Type != tt.media || got.Extractor != tt.extractor && tt.class == "" {
				t.Errorf("type %q by %q, want %q by %q", got.Type, got.Extractor, tt.media, tt.extractor)
			}
			if tt.class == "" {
				if got.Error != nil || !strings.Contains(got.Text, tt.text) {
					t.Errorf("got %q and error %v, want %q in it", got.Text, got.Error, tt.text)
				}
				return
			}
			if got.Error == nil || got.Text != "" {
				t.Fatalf("got %q and error %v, want class %s", got.Text, got.Error, tt.class)
			}
			if got.Error.Class != tt.class || got.Error.Blame != tt.blame || !strings.Contains(got.Error.Message, tt.text) {
				t.Errorf("got %+v, want class %s, blame %d and %q in the message", got.Error, tt.class, tt.blame, tt.text)
			}
		})
	}
}

func TestPDF(t *testing.T) {
	known := source.Errorf(source.Outage, source.Unavailable, "no sandbox")
	tests := []struct {
		name  string
		text  string
		err   error
		size  int
		want  string
		class string
	}{
		{name: "text", text: "page one\r\n\ftwo\n", want: "page one\n\n\ntwo"},
		{name: "scanned", text: " \f\n", class: source.NoText},
		{name: "broken", err: errors.New("may not be a PDF file"), class: source.Malformed},
		{name: "an error with a class", err: fmt.Errorf("run: %w", known), class: source.Unavailable},
		{name: "large", text: "x", size: 26 << 20, class: source.TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := extract.New(extract.Config{PDF: func(_ context.Context, body []byte) (string, error) {
				return tt.text,
					tt.err
			}})
			got := x.Page(t.Context(), source.Page{}, append([]byte("%PDF-1.4 "), make([]byte, tt.size)...), "application/pdf")
			if tt.class != "" {
				if got.Error == nil || got.Error.Class != tt.class {
					t.Errorf("got %q and error %v, want class %s", got.Text, got.Error, tt.class)
				}
			} else if got.Error != nil || got.Text != tt.want || got.Extractor != "pdftotext" {
				t.Errorf("got %q by %q and error %v, want %q", got.Text, got.Extractor, got.Error, tt.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	long := strings.Repeat("x", 2100)
	got := html(t, `<base href="/dir/index.html">
		<a href="a?b=1&amp;c=ä b#f">one</a> <a href='a?b=1&amp;c=ä b#f'>again</a>
		<a href="//other.example/p"><img alt="two" src=x.png></a>
		<a href="#here">here</a> <a href="/a/page#part">part</a> <a href="">empty</a>
		<a href="jAvaScript:x()">script</a> <a href="java&#10;script:x()">script</a> <a href="data:text/html,x">data</a>
		<a href="mailto:a@b.example">mail</a> <a href="file:///etc/passwd">file</a> <a href="http://[::1">broken</a>
		<a href="/`+long+`">long</a><map><area href="/area" alt="three"></map>
		<a href="/four"></a> text <a href="/four">four</a><iframe src="/frame" title="five"></iframe><a href="/six">six`)
	want := []source.Link{
		{URL: "https://www.example.com/dir/a?b=1&c=ä%20b#f", Text: "one"},
		{URL: "https://other.example/p", Text: "two"},
		{URL: "https://www.example.com/a/page#part", Text: "part"},
		{URL: "https://www.example.com/area", Text: "three"},
		{URL: "https://www.example.com/four", Text: "four"},
		{URL: "https://www.example.com/six", Text: "six"},
		{URL: "https://www.example.com/frame", Text: "five"},
	}
	if diff := cmp.Diff(want, got.Links); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, never := range []string{"cript:", "data:", "file:", long, "[here]", "[broken]"} {
		if strings.Contains(got.Text, never) {
			t.Errorf("%.40q is in the text:\n%s", never, got.Text)
		}
	}
	for _, kept := range []string{"here", "script", "[mail](mailto:a@b.example)", "![two](https://www.example.com/dir/x.png)"} {
		if !strings.Contains(got.Text, kept) {
			t.Errorf("%q is not in the text:\n%s", kept, got.Text)
		}
	}
}

func TestTitle(t *testing.T) {
	tests := []struct{ body, title string }{
		{"<title>\n A  &amp; B\n</title><meta property=og:title content=C><h1>D</h1>x", "A & B"},
		{"<title> </title><meta property=og:title content='C &lt; C'><h1>D</h1>x", "C < C"},
		{"<h1>D <b>d</b></h1><h1>E</h1>x", "D d"},
		{"<title>" + strings.Repeat("é", 400) + "</title>x", strings.Repeat("é", 300) + "…"},
		{"<title>A</title><svg><title>arrow</title></svg>x", "A"},
	}
	for _, tt := range tests {
		if got := html(t, tt.body); got.Title != tt.title {
			t.Errorf("%.60s: title %q, want %q", tt.body, got.Title, tt.title)
		}
	}
}

// TestErrorStays: the text of an error page helps, and it stays an error.
func TestErrorStays(t *testing.T) {
	missing := source.Errorf(source.Agent, "http_404", "no such page")
	got := extract.New(extract.Config{}).Page(t.Context(), source.Page{URL: "https://a.example/x", Status: 404,
		Error: missing}, []byte("<p>Moved to /y"), "text/html")
	if got.Error != missing || got.Text != "Moved to /y" || got.Status != 404 {
		t.Errorf("got %+v", got)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the episode is over"))
	for _, body := range []string{"<p>text", "%PDF-1.4", "<rss><channel><item/></channel></rss>", `{"a":1}`} {
		got := extract.New(extract.Config{}).Page(ctx, source.Page{}, []byte(body), "")
		if got.Error == nil || got.Error.Class != source.Unavailable || got.Error.Blame != source.Outage || got.Text != "" ||
			!strings.Contains(got.Error.Message, "the episode is over") {
			t.Errorf("%s: got %q and error %+v", body, got.Text, got.Error)
		}
	}
}

func TestMaxText(t *testing.T) {
	const most = 1000
	x := extract.New(extract.Config{MaxText: most})
	for _, tt := range []struct{ contentType, body string }{
		{"text/plain", strings.Repeat("línea\n", 1000)},
		{"text/html", strings.Repeat("<p>párrafo <a href=/x>x</a>", 1000)},
		{"application/json", "[" + strings.Repeat("1,", 1000) + "1]"},
		{"application/rss+xml", "<rss><channel>" + strings.Repeat("<item><title>título</title></item>", 150) +
			"</channel></rss>"},
	} {
		got := x.Page(t.Context(), source.Page{URL: "https://a.example/"}, []byte(tt.body), tt.contentType)
		text, said := strings.CutSuffix(got.Text, "\n\n[The page goes on. Only its beginning was read.]")
		if n := utf8.RuneCountInString(text); !said || n > most || n < most/2 {
			t.Errorf("%s: %d characters of at most %d, said %v: %.60q", tt.contentType, n, most, said, got.Text)
		}
	}
	large := "<p>before<!--" + strings.Repeat("x", 10<<20) + "--><p>after"
	if got := x.Page(t.Context(), source.Page{}, []byte(large), "text/html"); !strings.HasPrefix(got.Text, "before\n\n[The page goes on.") ||
		got.Bytes != len(large) {
		t.Errorf("%d bytes became %q of %d", len(large), got.Text, got.Bytes)
	}
	exact := strings.Repeat("x", most)
	if got := x.Page(t.Context(), source.Page{}, []byte(exact), "text/plain"); got.Text != exact {
		t.Errorf("%d characters became %q", most, got.Text)
	}
}

// TestVersion: what the version says of the modules is what is linked.
func TestVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.SplitSeq(extract.Version, ", ") {
		name, version, _ := strings.Cut(module, " ")
		if name != "extract" && !strings.Contains(string(mod), "/"+name+" "+version+"\n") && !strings.Contains(string(mod),
			"/"+name+"/v2 "+version+"\n") {
			t.Errorf("go.mod has another version than %s", module)
		}
	}
}
