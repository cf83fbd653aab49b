package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trajgen/tools/web/fetch"
	"trajgen/tools/web/guard"
	"trajgen/tools/web/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ source.Reader  = (*fetch.Fetcher)(nil)
	_ source.Crawler = (*fetch.Fetcher)(nil)
)

// world is a guard for which all names lead to this machine.
func world(t testing.TB) *guard.Guard {
	t.Helper()
	g, err := guard.New(guard.Config{
		Private: []string{"127.0.0.0/8"},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var href = regexp.MustCompile(`href="([^"]*)"`)

// plain takes a body as its own text.
func plain(_ context.Context, page source.Page, body []byte, header http.Header) source.Page {
	page.Text, page.Extractor, page.Title = string(body), "plain", header.Get("X-Title")
	base, _ := url.Parse(page.FinalURL)
	for _, match := range href.FindAllSubmatch(body, -1) {
		if u, err := base.Parse(string(match[1])); err == nil {
			page.Links = append(page.Links, source.Link{URL: u.String()})
		}
	}
	return page
}

// open makes a Fetcher over real sockets, without pauses.
func open(t testing.TB, config fetch.Config) *fetch.Fetcher {
	t.Helper()
	config.Guard, config.Extract, config.Recorded = world(t), plain, true
	transport := config.Guard.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	config.Transport = transport
	return fetch.New(config)
}

// serve returns the address of a server, as a name with a port.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	u, _ := url.Parse(server.URL)
	return "http://site.test:" + u.Port()
}

// read reads one page.
func read(t testing.TB, f *fetch.Fetcher, target string) source.Page {
	t.Helper()
	pages, err := f.Read(t.Context(), []string{target})
	if err != nil || len(pages) != 1 || pages[0].URL != target {
		t.Fatalf("Read(%s) = %+v, %v", target, pages, err)
	}
	return pages[0]
}

// fails holds that a page has an error.
func fails(t testing.TB, page source.Page, blame source.Blame, class string) {
	t.Helper()
	if page.Error == nil || page.Error.Class != class || page.Error.Blame != blame || page.Text != "" || page.Error.Message == "" {
		t.Errorf("%s: %.100q, error %#v, want blame %d, class %s", page.URL, page.Text, page.Error, blame, class)
	}
}

func TestRead(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "Text/HTML; charset=latin1")
		w.Header().Set("X-Title", "A page")
		fmt.Fprintf(w, "na\xefve %s %s", r.UserAgent(), r.URL.RawQuery)
	})
	site := serve(t, mux)
	page := read(t, open(t, fetch.Config{}), site+"/page?q=ü#part")
	want := source.Page{
		URL: site + "/page?q=ü#part", FinalURL: site + "/page?q=%C3%BC", Status: 200, Type: "text/html", Title: "A page",
		Extractor: "plain",
		Text:      page.Text, Bytes: len(page.Text), Digest: page.Digest,
	}
	if fmt.Sprint(page) != fmt.Sprint(want) || len(page.Digest) != 64 {
		t.Errorf("page = %+v, want %+v", page, want)
	}
	if !regexp.MustCompile(`^na.ve trajgen [a-z() ]+ q=%C3%BC$`).MatchString(page.Text) {
		t.Errorf("text = %q", page.Text)
	}
}

// The pages are in the order of the URLs, and one that is refused does not stop the others.
func TestReadMany(t *testing.T) {
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	urls := []string{site + "/3", "http://127.1/", site + "/1", site + "/2", "", site + "/1"}
	pages, err := open(t, fetch.Config{}).Read(t.Context(), urls)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"/3", "", "/1", "/2", "", "/1"} {
		if pages[i].URL != urls[i] || pages[i].Text != want || (pages[i].Error != nil) != (want == "") {
			t.Errorf("page %d = %+v, want %q", i, pages[i], want)
		}
	}
	fails(t, pages[1], source.Agent, source.BlockedURL)
}

func TestStatuses(t *testing.T) {
	var hits atomic.Int32
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := hits.Add(1)
		var code int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
		if r.URL.RawQuery == "once" && n > 1 {
			code = 200
		}
		if r.URL.RawQuery == "later" {
			w.Header().Set("Retry-After", "3600")
		}
		w.WriteHeader(code)
		if code != 204 && code != 304 {
			_, _ = io.WriteString(w, "words")
		}
	}))
	for _, tt := range []struct {
		path  string
		blame source.Blame
		class string
		hits  int32
	}{
		{"/404", source.Agent, "http_404", 1}, {"/410", source.Agent, "http_410", 1}, {"/403", source.Agent, "http_403", 1},
		{"/401", source.Agent, "http_401", 1}, {"/302", source.Agent, "http_302", 1}, {"/304", source.Agent, "http_304", 1},
		{"/999", source.Agent, "http_999", 1}, {"/500", source.Outage, source.Unavailable, 3},
		{"/429", source.Outage, source.Unavailable, 3}, {"/503?later", source.Outage, source.Unavailable, 1}, {"/503?once", 0, "", 2},
		{"/429?once", 0, "", 2}, {"/200", 0, "", 1}, {"/204", 0, "", 1},
	} {
		hits.Store(0)
		page := read(t, open(t, fetch.Config{}), site+tt.path)
		if tt.class != "" {
			fails(t, page, tt.blame, tt.class)
		} else if page.Error != nil {
			t.Errorf("%s: %v", tt.path, page.Error)
		}
		if hits.Load() != tt.hits || page.Status == 0 {
			t.Errorf("%s: %d requests, want %d; status %d", tt.path, hits.Load(), tt.hits, page.Status)
		}
	}
}

func TestRedirects(t *testing.T) {
	var site string
	mux := http.NewServeMux()
	mux.HandleFunc("/down/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, _ = fmt.Sscan(r.PathValue("n"), &n); n == 0 {
			_, _ = io.WriteString(w, "arrived")
			return
		}
		http.Redirect(w, r, fmt.Sprint(n-1), http.StatusFound)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("u"))
		w.WriteHeader(http.StatusMovedPermanently)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/wall", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("seen"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1"})
			http.Redirect(w, r, "/wall", http.StatusSeeOther)
			return
		}
		_, _ = io.WriteString(w, "behind the wall")
	})
	site = serve(t, mux)
	f := open(t, fetch.Config{})
	for path, want := range map[string]string{
		"/down/5": "arrived", "/to?u=/down/2": "arrived", "/wall": "behind the wall", "/to?u=" + site + "/down/0": "arrived",
	} {
		if page := read(t, f, site+path); page.Text != want || page.Error != nil || path != "/wall" && page.FinalURL != site+"/down/0" {
			t.Errorf("%s: %+v", path, page)
		}
	}
	for path, class := range map[string]string{
		"/down/6": source.Redirects, "/loop": source.Redirects, "/to?u=http://169.254.169.254/latest": source.BlockedURL,
		"/to?u=file:///etc/passwd": source.BlockedURL,
		"/to?u=//10.0.0.1/":        source.BlockedURL, "/to?u=http://0x7f.1/": source.BlockedURL,
		"/to?u=http://u:p@site.test/": source.BlockedURL,
		"/to?u=http://[::1":           source.BlockedURL, "/to?u=javascript:alert(1)": source.BlockedURL,
		"/to?u=http://localhost/": source.BlockedURL,
	} {
		fails(t, read(t, f, site+path), source.Agent, class)
	}
}

func TestKinds(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100)
	for _, tt := range []struct{ declared, body, want string }{
		{"text/html; charset=x; charset=y", "x", "text/html"}, {"", "<!DOCTYPE html><title>x", "text/html"},
		{"", "words", "text/plain"}, {"text/plain", `{"a": [1]}`, "application/json"},
		{"text/plain", "[link] to words", "text/plain"}, {"", "[1, 2]", "application/json"},
		{"application/octet-stream", "\n<?xml version='1.0'?><rss version='2.0'>", "application/rss+xml"},
		{"", "<feed xmlns='x'>", "application/atom+xml"}, {"text/plain", "<?xml version='1.0'?>\n<svg/>", ""},
		{"", "<?xml version='1.0'?><x/>", "text/xml"}, {"application/octet-stream", "%PDF-1.7", "application/pdf"},
		{"application/vnd.api+json", "<html>", "application/vnd.api+json"}, {"html", "<html>", "text/html"},
		{"text/markdown", "# x", "text/markdown"}, {"application/pdf", "not one", "text/plain"},
		{"", "", "text/plain"}, {"", "\ufeff{}", "application/json"}, {"application/zip", "PK", ""},
		{"image/png", png, ""}, {"", png, ""}, {"text/plain", png, ""}, {"text/plain", "\x00\x01\x02", ""},
		{"video/mp4", "x", ""}, {"application/octet-stream", "\x7fELF\x00", ""},
	} {
		site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{tt.declared}
			_, _ = io.WriteString(w, tt.body)
		}))
		page := read(t, open(t, fetch.Config{}), site)
		if tt.want == "" {
			fails(t, page, source.Agent, source.NoText)
			want := fmt.Sprintf("of type %s (%d bytes)", page.Type, len(tt.body))
			if page.Error != nil && !strings.Contains(page.Error.Message, want) {
				t.Errorf("%q: %s, want %q in it", tt.declared, page.Error, want)
			}
		} else if page.Type != tt.want || page.Error != nil || page.Text != tt.body {
			t.Errorf("%q %q = %s, %v, want %s", tt.declared, tt.body, page.Type, page.Error, tt.want)
		}
	}
}

// A call that is given up leaves nothing behind; TestMain looks.
func TestReadEnds(t *testing.T) {
	arrived := make(chan struct{}, 10)
	site := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		<-arrived
		cancel(enough)
	}()
	// The third waits for a place.
	pages, err := open(t, fetch.Config{}).Read(ctx, []string{site, site + "/2", site + "/3"})
	if !errors.Is(err, enough) || len(pages) != 3 {
		t.Errorf("Read = %v, %v", pages, err)
	}
}

func TestSlow(t *testing.T) {
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			w.Header().Set("Content-Type", "text/html")
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		}
		<-r.Context().Done()
	}))
	f := open(t, fetch.Config{Timeout: 50 * time.Millisecond})
	for _, path := range []string{"/drip", "/silent"} {
		page := read(t, f, site+path)
		fails(t, page, source.Outage, source.Unavailable)
		if !strings.Contains(page.Error.Message, "within 50ms") {
			t.Errorf("%s: %v", path, page.Error)
		}
	}
}

// A crawl asks robots.txt once, also about where a link redirects to; a page that an agent names is read without.
func TestReadRobots(t *testing.T) {
	var asked atomic.Int32
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			asked.Add(1)
			_, _ = io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		case "/sly":
			http.Redirect(w, r, "/private/b", http.StatusFound)
		case "/":
			_, _ = io.WriteString(w, `<a href="/a"><a href="/private/a"><a href="/sly">`)
		default:
			_, _ = io.WriteString(w, "words")
		}
	}))
	f := open(t, fetch.Config{})
	pages, err := f.Crawl(t.Context(), source.Crawl{URL: site})
	if err != nil || len(pages) != 2 || pages[1].URL != site+"/a" || asked.Load() != 1 {
		t.Errorf("%+v, %v, robots.txt was asked for %d times", pages, err, asked.Load())
	}
	if page := read(t, f, site+"/private/a"); page.Text != "words" {
		t.Errorf("without robots: %+v", page)
	}
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>Tides</h1>")
	}))
	defer server.Close()
	g, err := guard.New(guard.Config{Private: []string{"127.0.0.1"}})
	if err != nil {
		panic(err)
	}
	transport := g.Transport()
	defer transport.CloseIdleConnections()
	extract := func(_ context.Context, page source.Page, body []byte, _ http.Header) source.Page {
		page.Text = string(bytes.ToUpper(body))
		return page
	}
	f := fetch.New(fetch.Config{Transport: transport, Guard: g, Extract: extract})
	pages, err := f.Read(context.Background(), []string{server.URL, "file:///etc/passwd"})
	fmt.Println(pages[0].Status, pages[0].Type, pages[0].Text, err)
	fmt.Println(pages[1].Error.Class, pages[1].Error)
	// Output:
	// 200 text/html <H1>TIDES</H1> <nil>
	// blocked_url "file:///etc/passwd" is refused: only http and https are allowed, with a whole URL as in https://example.org/page
}
