package provider_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
	"trajgen/tools/web/tape"
)

// TestReplayed has a recording answer what providers asked, tries and polls among them, without their servers and keys.
func TestReplayed(t *testing.T) {
	busy := answer{429, "{}", map[string]string{"Retry-After": "3600"}}
	dir := t.TempDir()
	recorder, err := tape.Create(dir, tape.Options{Secrets: []string{key}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	type asked struct {
		name string
		fake *fake
		ask  func(provider.Provider) (any, error)
		said any
	}
	search := func(p provider.Provider) (any, error) { return p.(source.Searcher).Search(t.Context(), query) }
	all := []*asked{
		{name: "firecrawl", ask: func(p provider.Provider) (any, error) { return p.(source.Crawler).Crawl(t.Context(), crawl) },
			fake: newFake(t,
				answer{status: 200, body: `{"success":true,"id":"j"}`}, answer{status: 200, body: `{"success":true,"status":"scraping"}`},
				busy,
				answer{status: 200, body: `{"success":true,"status":"completed","data":[{"markdown":"# One",
				"metadata":{"sourceURL":"https://a.test/"}}]}`})},
	}
	for _, name := range provider.Names() {
		all = append(all, &asked{name: name, ask: search, fake: newFake(t, busy, answer{status: 200, body: fixtures[name].right})})
	}
	open := func(a *asked, through func(version string, live http.RoundTripper) http.RoundTripper, key string) provider.Provider {
		return a.fake.open(t, a.name, func(c *provider.Config) {
			c.Transport, c.Hasty, c.Key = through(c.Version(), c.Transport), true, key
		})
	}
	for _, a := range all {
		live := func(version string, live http.RoundTripper) http.RoundTripper {
			return recorder.Play("episode", 1).Transport("web", version, live)
		}
		if a.said, err = a.ask(open(a, live, key)); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	played, err := tape.Open(dir, tape.ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer played.Close()
	for _, a := range all {
		before := len(a.fake.got)
		recorded := func(version string, _ http.RoundTripper) http.RoundTripper {
			return played.Play("another episode").Transport("", version)
		}
		again, err := a.ask(open(a, recorded, ""))
		if diff := cmp.Diff(a.said, again); err != nil || diff != "" || len(a.fake.got) != before {
			t.Errorf("%s: %v, %d requests (-recorded +played):\n%s", a.name, err, len(a.fake.got)-before, diff)
		}
	}
	if stats := played.Stats(); len(stats.Misses) > 0 {
		t.Errorf("stats %+v", stats)
	}
}
