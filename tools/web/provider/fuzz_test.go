package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// FuzzAnswer has servers answer anything: what comes of it is bounded.
func FuzzAnswer(f *testing.F) {
	for name, fixture := range fixtures {
		for _, body := range []string{fixture.right, fixture.empty, fixture.failed, fixture.right[:len(fixture.right)/2]} {
			f.Add(name, 200, body)
		}
	}
	f.Fuzz(func(t *testing.T, name string, status int, body string) {
		if _, ok := fixtures[name]; !ok {
			return
		}
		c := provider.Config{Name: name, BaseURL: "http://a.test", Key: key, Hasty: true, Now: time.Now}
		if name == "generic" {
			c.Generic = described("http://a.test")
		}
		c.Transport = transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
		p, err := provider.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		results, err := p.(source.Searcher).Search(t.Context(), query)
		if err != nil && results != nil || len(results) > query.Limit {
			t.Errorf("%d results, %v", len(results), err)
		}
		for _, r := range results {
			if r.URL == "" || len(r.Title) > 4*300 || len(r.Description) > 4*2000 || len(r.URL) > 2048 {
				t.Errorf("%+v", r)
			}
		}
		if err != nil {
			if strings.Contains(err.Error(), key) {
				t.Errorf("the error tells the key: %v", err)
			}
		}
		if r, ok := p.(source.Reader); ok {
			if pages, err := r.Read(t.Context(), []string{"https://a.test/1", "https://b.test/"}); err == nil && len(pages) != 2 {
				t.Errorf("%d pages", len(pages))
			}
		}
	})
}
