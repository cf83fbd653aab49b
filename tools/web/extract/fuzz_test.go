package extract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

// FuzzPage: whatever a server sends becomes a text that is valid and bounded, or an error, and the same each time.
func FuzzPage(f *testing.F) {
	inputs, _ := filepath.Glob("testdata/*.*ml")
	for _, input := range inputs {
		body, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("", body)
	}
	f.Add("text/html; charset=gb18030", []byte("<p>\x81\x30\x81\x30<a href=x><table><tr><td colspan=3><ul><li><pre>x"))
	f.Add("application/json", []byte(`{"a":[1,{"b":null}]}`))
	f.Add("application/pdf", []byte("%PDF-1.4"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		const most = 2000
		x := extract.New(extract.Config{MaxText: most})
		page := x.Page(t.Context(), source.Page{URL: "https://a.example/b"}, body, contentType)
		if (page.Text == "") != (page.Error != nil) {
			t.Fatalf("text %q and error %v", page.Text, page.Error)
		}
		for _, text := range []string{page.Text, page.Title} {
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > most+60 {
				t.Fatalf("%d characters: %.100q", utf8.RuneCountInString(text), text)
			}
		}
		for _, link := range page.Links {
			if !strings.HasPrefix(link.URL, "http") || len(link.URL) > 2000 || !utf8.ValidString(link.Text) {
				t.Fatalf("link %.100q", link)
			}
		}
		if again := x.Page(t.Context(), source.Page{URL: "https://a.example/b"}, body, contentType); show(again) != show(page) {
			t.Fatalf("once\n%s\nand once\n%s", show(page), show(again))
		}
	})
}

// BenchmarkPage reads the pages of testdata.
func BenchmarkPage(b *testing.B) {
	inputs, err := filepath.Glob("testdata/*.*ml")
	if err != nil {
		b.Fatal(err)
	}
	x := extract.New(extract.Config{})
	for _, input := range inputs {
		body, err := os.ReadFile(input)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(input), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				x.Page(b.Context(), source.Page{URL: "https://www.example.com/2026/03/page"}, body, "")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

// BenchmarkHostile shows the worst cases.
func BenchmarkHostile(b *testing.B) {
	x := extract.New(extract.Config{})
	for name, make := range hostile {
		b.Run(name, func(b *testing.B) {
			body := []byte(make(100))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				x.Page(b.Context(), source.Page{URL: "https://a.example/"}, body, "text/html; charset=utf-8")
			}
		})
	}
}
