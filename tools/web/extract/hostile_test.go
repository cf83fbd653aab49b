package extract_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

// hostile are pages that are small, or at most 10 MB, and would be large or slow if nothing were bounded. Each has the words
// "find me". Size is how many percent of it are asked for.
var hostile = map[string]func(size int) string{
	"600 open elements": func(size int) string {
		return "<title>T</title><p><a href=/x>find me</a>" + strings.Repeat("<b>x", 600)
	},
	"200 nested lists": func(size int) string { return strings.Repeat("<ul><li>x find me", 200) },
	"lists of many lines": func(size int) string {
		return strings.Repeat("<ul><li>", 150) + "find me" + strings.Repeat("<li>x", 100_000/100*size)
	},
	"200 nested quotes": func(size int) string {
		return strings.Repeat("<blockquote>find me", 200) + strings.Repeat("<p>y", 50_000/100*size)
	},
	"pre in nested lists": func(size int) string {
		return strings.Repeat("<ul><li>", 100) + "<pre>find me" + strings.Repeat("\n.", 500_000/100*size)
	},
	"400 nested tables": func(size int) string { return "find me" + strings.Repeat("<table><tr><td>x", 130) },
	"tables in links": func(size int) string {
		return "find me" + strings.Repeat("<a href=/x><table><tr><td>", 90) + "<a href=/y>y"
	},
	"links in links": func(size int) string { return "find me" + strings.Repeat("<a href=/x><object>", 200) },
	"formats in formats": func(size int) string {
		return strings.Repeat("<b><i><del><code>", 100) + "find me " + strings.Repeat("word ", 100_000/100*size)
	},
	"headings in headings": func(size int) string {
		return strings.Repeat("<h1><div><h2><div>", 100) + "find me " + strings.Repeat("word ", 15_000)
	},
	"5 MB href": func(size int) string {
		return "find me <a href='https://a.example/" + strings.Repeat("x", (5<<20)/100*size) + "'>link</a>"
	},
	"5 MB alt": func(size int) string {
		return "find me <img src=/x alt='" + strings.Repeat("x", (5<<20)/100*size) + "'>"
	},
	"5 MB class": func(size int) string {
		return "<p class='" + strings.Repeat("comment ", 600_000/100*size) + "'>find me"
	},
	"5 MB title": func(size int) string { return "find me <title>" + strings.Repeat("x", (5<<20)/100*size) + "</title>" },
	"5 MB word":  func(size int) string { return "find me " + strings.Repeat("x", (5<<20)/100*size) },
	"5 MB picture": func(size int) string {
		return "find me <img src='data:image/png;base64," + strings.Repeat("A", (5<<20)/100*size) + "'>"
	},
	"a base before links": func(size int) string {
		return "<base href='https://a.example/" + strings.Repeat("x/", 900) + "'>find me" + strings.Repeat("<a href=y>z</a>",
			100_000/100*size)
	},
	"300,000 buttons": func(size int) string { return "find me" + strings.Repeat("<button>b</button>", 300_000/100*size) },
	"300,000 paragraphs": func(size int) string {
		return "find me" + strings.Repeat("<p>some words, and more\n", 300_000/100*size)
	},
	"40,000 paragraphs": func(size int) string {
		return "<p>find me</p>" + strings.Repeat("<div><p>Some words, and a few more of them here.</p></div>", 24_000/100*size)
	},
	"40,000 links": func(size int) string {
		return "<p>find me</p>" + strings.Repeat("<li><a href=/x>link</a>", 24_000/100*size)
	},
	"a million breaks": func(size int) string { return "find me" + strings.Repeat("<br>", 1_000_000/100*size) },
	"40,000 breaks":    func(size int) string { return "find me" + strings.Repeat("<br>\n", 40_000/100*size) },
	"spans of a cell": func(size int) string {
		return "find me<table><tr>" + strings.Repeat("<td colspan=1000000 rowspan=1000000>x", 1000)
	},
	"many spans": func(size int) string {
		return "find me<table>" + strings.Repeat("<tr><td colspan=50 rowspan=99>x", 10_000)
	},
	"a wide table": func(size int) string {
		return "find me<table><tr>" + strings.Repeat("<td>x", 6_000) + strings.Repeat("<tr><td>y", 6_000)
	},
	"a long cell": func(size int) string {
		return "<table><tr><td>find me " + strings.Repeat("x", (1<<20)/100*size) + strings.Repeat("<tr><td>y", 5000)
	},
	"10 MB of <":          func(size int) string { return "find me" + strings.Repeat("<", (10<<20)/100*size) },
	"10 MB of attributes": func(size int) string { return "find me<p " + strings.Repeat("a b=c ", 1_500_000/100*size) + ">" },
	"open comments":       func(size int) string { return "find me" + strings.Repeat("<!-- ", 1_000_000/100*size) },
	"misnested formats":   func(size int) string { return "find me" + strings.Repeat("<p><b><i><u></p>", 20_000/100*size) },
	"formats in paragraphs": func(size int) string {
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, "<b id=%d>", i)
		}
		return "find me<p>" + b.String() + strings.Repeat("<p>x", 1_000_000/100*size)
	},
	"special characters":     func(size int) string { return "find me " + strings.Repeat("*_[]()`#<>|", 400_000/100*size) },
	"a long start of a list": func(size int) string { return "find me<ol start=" + strings.Repeat("9", 17) + "><li>a<li>b" },
	"controls and bidi": func(size int) string {
		return "find me, whatever else there is in a line, of which this is much the longer part: \x00\x01\x7f\u202e\u200b\ufeff\ufffe"
	},
	"2,000,000 paragraphs": func(size int) string { return "<p>find me" + strings.Repeat("<p>word", 2_000_000/100*size) },
	"JSON as HTML":         func(size int) string { return `{"a":"find me` + strings.Repeat(`[`, (1<<20)/100*size) },
}

// TestHostile: whatever the page is, its text is found and bounded.
func TestHostile(t *testing.T) {
	const most = 100_000
	x := extract.New(extract.Config{MaxText: most})
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			body := []byte(make(4))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := x.Page(t.Context(), source.Page{URL: "https://a.example/"}, body, "text/html; charset=utf-8")
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 600<<20 {
				t.Errorf("%d bytes were allocated for %d", n, len(body))
			}
			if got.Error != nil || !strings.Contains(got.Text, "find me") {
				t.Errorf("by %s, error %v: %.200q", got.Extractor, got.Error, got.Text)
			}
			if n := utf8.RuneCountInString(got.Text); n > most+100 || !utf8.ValidString(got.Text) {
				t.Errorf("%d characters", n)
			}
			if len(got.Title) > 2000 || len(got.Links) > 500 {
				t.Errorf("a title of %d bytes, %d links", len(got.Title), len(got.Links))
			}
		})
	}
}

// TestNesting: what is deep is not indented ever further.
func TestNesting(t *testing.T) {
	body := strings.Repeat("<ul><li>a line of a list", 200)
	if got := html(t, body); len(got.Text) > 3*len(body) {
		t.Errorf("%d bytes became %d", len(body), len(got.Text))
	}
}

// TestHostileForms: so it is with bodies of other forms.
func TestHostileForms(t *testing.T) {
	for name, tt := range map[string]struct{ contentType, body string }{
		"deep JSON": {"application/json", strings.Repeat("[", 9000) + strings.Repeat("]", 9000)},
		"wide JSON, deep": {"application/json", strings.Repeat("[", 90) + strings.Repeat("1,", 200_000) + "1" +
			strings.Repeat("]", 90)},
		"deeper than allowed": {"application/json", strings.Repeat("[", 1_000_000)},
		"many entries": {"application/rss+xml", "<rss><channel>" + strings.Repeat("<item><title>x</title></item>",
			30_000) + "</channel></rss>"},
		"a long entry": {"application/rss+xml", "<rss><channel><item><description>" + strings.Repeat("&lt;b&gt;x",
			80_000) + "</description></item></channel></rss>"},
		"a deep entry": {"application/rss+xml", "<rss><channel><item><description>" + strings.Repeat("<b>x", 80_000)},
		"many deep entries": {"application/rss+xml", "<rss><channel>" +
			strings.Repeat("<item><description>"+strings.Repeat("&lt;ul>&lt;li>", 500)+"x</description></item>", 40)},
		"a billion laughs": {"text/xml",
			`<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>` +
				`<rss><channel><item><title>&b;</title></item></channel></rss>`},
		"deep XML":             {"text/xml", "<rss>" + strings.Repeat("<a>", 100_000)},
		"one line":             {"text/plain", strings.Repeat("x", 9<<20)},
		"lines alone":          {"text/plain", "x" + strings.Repeat("\n", 1<<20) + "x"},
		"carriage returns":     {"text/plain", "x" + strings.Repeat("\r", 1<<20) + "x"},
		"bytes of no charset":  {"text/plain", strings.Repeat("\xff\x81\xa0\xe0 ", 100_000)},
		"doctype that is long": {"", "<!DOCTYPE " + strings.Repeat("[", 4000) + "<html><p>x"},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 100_000
			got := extract.New(extract.Config{MaxText: most}).Page(t.Context(), source.Page{URL: "https://a.example/"},
				[]byte(tt.body), tt.contentType)
			if n := utf8.RuneCountInString(got.Text); got.Error != nil || n == 0 || n > most+100 ||
				!utf8.ValidString(got.Text) {
				t.Errorf("%d characters by %s, error %v", n, got.Extractor, got.Error)
			}
		})
	}
}

// TestSame: the same body is the same page, also where a charset is as probable as another, and for many at once.
func TestSame(t *testing.T) {
	x := extract.New(extract.Config{})
	for _, body := range []string{"<p>\xe9\xe8\xa4\xb3", "\xb4\xeb\xc7\xd1", "<p>\x83\x65\x83\x58\x83\x67",
		"<title>a</title><p>b <a href=/c>d</a><table><th>e"} {
		page := func() string {
			return show(x.Page(t.Context(), source.Page{URL: "https://a.example/"}, []byte(body), "text/html"))
		}
		want := page()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					if got := page(); got != want {
						t.Errorf("%q is once\n%s\nand once\n%s", body, want, got)
					}
				}
			})
		}
		all.Wait()
	}
}
