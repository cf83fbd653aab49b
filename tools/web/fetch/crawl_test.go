package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/fetch"
	"trajgen/tools/web/source"
)

// pages is a site by path: a body, "-> URL" for a redirect, or a status.
type pages map[string]string

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := p[r.URL.Path]
	var code int
	if to, redirects := strings.CutPrefix(body, "-> "); redirects {
		http.Redirect(w, r, to, http.StatusFound)
	} else if _, err := fmt.Sscanf(body, "status %d", &code); err == nil || !ok {
		w.WriteHeader(max(code, http.StatusNotFound))
	} else {
		if !strings.HasSuffix(r.URL.Path, ".txt") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = io.WriteString(w, body)
	}
}

func to(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&b, `<a href="%s">`, path)
	}
	return b.String()
}

// paths shows what a crawl returned: the path of each page, and the class of its error.
func paths(found []source.Page) []string {
	var all []string
	for _, page := range found {
		_, path, _ := strings.Cut(strings.TrimPrefix(page.URL, "http://"), "/")
		if page.Error != nil {
			path += " " + page.Error.Class
		}
		all = append(all, "/"+path)
	}
	return all
}

func TestCrawl(t *testing.T) {
	site := pages{
		"/": "start" + to("/b", "/a#part", "/a", "mailto:x@y.test", "http://elsewhere.test/", "/gone", "/old",
			"/copy", "/", "//127.1/", "/away"),
		"/a":          "a" + to("/a/1", "/a/2"),
		"/b":          "b" + to("/a", "/b/1", "/secret"),
		"/a/1":        "a1" + to("/a/1/x"),
		"/a/2":        "a2",
		"/b/1":        "b1",
		"/a/1/x":      "a1x" + to("/a/1/x/y"),
		"/a/1/x/y":    "too deep",
		"/old":        "-> /a/2",
		"/copy":       "b" + to("/a", "/b/1", "/secret"),
		"/away":       "-> http://elsewhere.test/",
		"/secret":     "secret",
		"/robots.txt": "# words\nDisallow: /nothing\nCrawl-delay: soon\nUser-agent: *\nDisallow: /secret\nCrawl-delay: nan\n",
	}
	base := serve(t, site)
	for _, tt := range []struct {
		name  string
		crawl source.Crawl
		want  []string
	}{
		{"all", source.Crawl{}, []string{"/", "/b", "/a", "/gone http_404", "/old", "/b/1", "/a/1", "/a/1/x"}},
		{"depth", source.Crawl{Depth: 1}, []string{"/", "/b", "/a", "/gone http_404", "/old"}},
		{"limit", source.Crawl{Limit: 3}, []string{"/", "/b", "/a"}}, {"one", source.Crawl{Limit: 1}, []string{"/"}},
		{"include", source.Crawl{Include: []string{"/a", "/a/**"}}, []string{"/", "/a", "/a/1", "/a/2", "/a/1/x"}},
		{"include a level", source.Crawl{Include: []string{"/a", "/a/*"}}, []string{"/", "/a", "/a/1", "/a/2"}},
		{"exclude", source.Crawl{Exclude: []string{"/a", "/b/*", "/old", "/gone", "/copy"}}, []string{"/", "/b"}},
		{"from a page", source.Crawl{URL: base + "/a/1#x"}, []string{"/a/1#x", "/a/1/x", "/a/1/x/y"}},
		{"from a forbidden page", source.Crawl{URL: base + "/secret"}, []string{"/secret blocked_policy"}},
		{"from a broken page", source.Crawl{URL: base + "/gone"}, []string{"/gone http_404"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.crawl.URL == "" {
				tt.crawl.URL = base + "/"
			}
			found, err := open(t, fetch.Config{}).Crawl(t.Context(), tt.crawl)
			if diff := cmp.Diff(tt.want, paths(found)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, pattern := range []string{"/a[", strings.Repeat("{a,a}", 100)} {
		_, err := open(t, fetch.Config{}).Crawl(t.Context(), source.Crawl{URL: base, Include: []string{pattern}})
		if e, ok := errors.AsType[*source.Error](err); !ok || e.Class != source.Malformed {
			t.Errorf("Include %q: %v", pattern, err)
		}
	}
}

// The same pages come in the same order, whichever answers first.
func TestCrawlOrder(t *testing.T) {
	var want []string
	for seed := range int64(8) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			var mu sync.Mutex
			f := recorded(t, func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				delay := time.Duration(random.Intn(1000)) * time.Millisecond
				mu.Unlock()
				time.Sleep(delay)
				path := req.URL.Path
				switch {
				case path == "/robots.txt":
					return answer(req, 404, nil, ""), nil
				case strings.HasSuffix(path, "/1"): // the same content as the page above it has with another name
					return answer(req, 302, http.Header{"Location": {"/0" + strings.TrimSuffix(path, "/1")}}, ""), nil
				case strings.HasSuffix(path, "/2"):
					return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, "the same everywhere"), nil
				case strings.HasSuffix(path, "/3"):
					return answer(req, 410, nil, ""), nil
				}
				return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, links(path, 6)), nil
			})
			found, err := f.Crawl(t.Context(), source.Crawl{URL: "http://site.test/"})
			if err != nil {
				t.Fatal(err)
			}
			if got := paths(found); want == nil {
				want = got
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d (-first +this):\n%s", seed, diff)
			}
		})
	}
	broken := slices.DeleteFunc(slices.Clone(want), func(path string) bool { return !strings.HasSuffix(path, " http_410") })
	if len(want)-len(broken) < 30 || len(broken) == 0 {
		t.Errorf("%d pages, %d of them broken", len(want), len(broken))
	}
}

// A site without end, whose pages are all the same or all broken, is left after a hundred requests.
func TestCrawlTraps(t *testing.T) {
	for name, status := range map[string]int{"broken": 404, "equal": 200} {
		requests := 0
		var mu sync.Mutex
		f := recorded(t, func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			requests++
			if req.URL.Path == "/" {
				return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, links("/", 5000)), nil
			}
			return answer(req, status, http.Header{"Content-Type": {"text/html"}}, "again"), nil
		})
		found, err := f.Crawl(t.Context(), source.Crawl{URL: "http://site.test/"})
		if err != nil || requests > 101 || len(found) > 100 {
			t.Errorf("%s: %d requests, %d pages, %v", name, requests, len(found), err)
		}
	}
	// Subdomains without end would be asked for a robots.txt each.
	hosts := map[string]bool{}
	var mu sync.Mutex
	f := recorded(t, func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		hosts[req.URL.Host] = true
		if req.URL.Path == "/robots.txt" {
			return answer(req, 200, nil, "user-agent: trajgen\ndisallow: /no"), nil
		}
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, `<a href="http://h%d.site.test/no">`, i)
		}
		return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, b.String()), nil
	})
	if _, err := f.Crawl(t.Context(), source.Crawl{URL: "http://site.test/"}); err != nil || len(hosts) > 10 {
		t.Errorf("%d hosts, %v", len(hosts), err)
	}
}

func TestCrawlTime(t *testing.T) {
	slow := trip(func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(20 * time.Second):
			return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, links(req.URL.Path, 3)), nil
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: slow})
		began := time.Now()
		found, err := f.Crawl(t.Context(), source.Crawl{URL: "http://site.test/"})
		if took := time.Since(began); err != nil || took != 5*time.Minute || len(found) < 10 || len(found) > 30 {
			t.Errorf("%d pages in %s, %v", len(found), took, err)
		}
		for _, page := range found {
			if page.Error != nil {
				t.Errorf("%s: %v", page.URL, page.Error)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: slow})
		if found, err := f.Crawl(ctx, source.Crawl{URL: "http://site.test/"}); !errors.Is(err, enough) || len(found) != 1 {
			t.Errorf("%d pages, %v", len(found), err)
		}
	})
}

// A crawl stays on the site that the first page leads to.
func TestCrawlSite(t *testing.T) {
	f := recorded(t, func(req *http.Request) (*http.Response, error) {
		html := http.Header{"Content-Type": {"text/html"}}
		switch req.URL.Host + req.URL.Path {
		case "old.test/":
			return answer(req, 301, http.Header{"Location": {"http://www.new.co.uk/"}}, ""), nil
		case "www.new.co.uk/":
			return answer(req, 200, html, to("http://docs.new.co.uk/", "http://other.co.uk/", "http://old.test/2", "/2",
				"http://www.new.co.uk:8080/")), nil
		case "old.test/robots.txt":
		default:
			if !strings.HasSuffix(req.URL.Hostname(), ".new.co.uk") {
				t.Errorf("%s was asked for", req.URL)
			}
		}
		if req.URL.Path == "/robots.txt" {
			return answer(req, 404, nil, ""), nil
		}
		return answer(req, 200, html, "words of "+req.URL.String()), nil
	})
	found, err := f.Crawl(t.Context(), source.Crawl{URL: "http://old.test/"})
	var got []string
	for _, page := range found {
		got = append(got, page.FinalURL)
	}
	want := []string{"http://www.new.co.uk/", "http://docs.new.co.uk/", "http://www.new.co.uk/2", "http://www.new.co.uk:8080/"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRobots(t *testing.T) {
	for _, tt := range []struct {
		name, robots string
		status       int
		class        string // of the page; "" is allowed
		blame        source.Blame
	}{
		{"none", "", 404, "", 0}, {"forbidden itself", "", 403, "", 0}, {"empty", "", 200, "", 0},
		{"all", "User-agent: *\nDisallow: /", 200, source.Policy, source.Agent},
		{"us", "User-agent: *\nAllow: /\n\nUser-Agent: Trajgen\nDisallow: /page", 200, source.Policy, source.Agent},
		{"others", "User-agent: otherbot\nDisallow: /", 200, "", 0},
		{"allowed within", "User-agent: *\nDisallow: /p\nAllow: /page", 200, "", 0},
		{"a pattern", "User-agent: *\nDisallow: /*.html$", 200, source.Policy, source.Agent},
		{"a query", "User-agent: *\nDisallow: /*?", 200, "", 0},
		{"lines of old", "User-agent: *\rDisallow: /\r", 200, source.Policy, source.Agent},
		{"with a mark", "\ufeffUser-agent: *\nDisallow: /", 200, source.Policy, source.Agent},
		{"rules of no agent", "Disallow: /\nCrawl-delay: x", 200, "", 0},
		{"wrong lines", "User-agent: *\nCrawl-delay: x\nnonsense\nDisallow: /", 200, source.Policy, source.Agent},
		{"a page", "<!doctype html><p>User-agent: *<p>Disallow: /", 200, "", 0},
		{"an outage", "", 503, source.Unavailable, source.Outage}, {"too busy", "", 429, source.Unavailable, source.Outage},
		{"elsewhere", "/elsewhere.txt", 301, source.Policy, source.Agent}, {"nowhere", "/robots.txt", 301, "", 0},
		{"into the net of the machine", "http://169.254.169.254/", 302, "", 0}, {"without a place", "", 302, "", 0},
		{"a million rules", "User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c*$\n", 1e5), 200, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/elsewhere.txt":
					_, _ = io.WriteString(w, "User-agent: *\nDisallow: /")
				case r.URL.Path == "/robots.txt" && tt.status/100 == 3:
					if tt.robots != "" {
						w.Header().Set("Location", tt.robots)
					}
					w.WriteHeader(tt.status)
				case r.URL.Path == "/robots.txt":
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, tt.robots)
				default:
					_, _ = io.WriteString(w, "words")
				}
			}))
			found, err := open(t, fetch.Config{}).Crawl(t.Context(), source.Crawl{URL: base + "/page.html"})
			if err != nil || len(found) != 1 {
				t.Fatalf("%+v, %v", found, err)
			}
			if tt.class != "" {
				fails(t, found[0], tt.blame, tt.class)
			} else if found[0].Error != nil || found[0].Text != "words" {
				t.Errorf("%+v", found[0])
			}
		})
	}
}
