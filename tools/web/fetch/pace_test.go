package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/tools/web/fetch"
	"trajgen/tools/web/source"
)

// trip is a transport without sockets, for tests on a clock that stands still.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// recorded makes a Fetcher over a transport without sockets that does not pause.
func recorded(t testing.TB, transport trip) *fetch.Fetcher {
	return fetch.New(fetch.Config{Guard: world(t), Extract: plain, Recorded: true, Transport: transport})
}

func answer(req *http.Request, status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// load counts what is in progress at a time.
type load struct {
	mu          sync.Mutex
	now, most   int
	host        map[string]int
	mostPerHost int
}

func (l *load) request(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.now++
	l.host[req.URL.Host]++
	l.most, l.mostPerHost = max(l.most, l.now), max(l.mostPerHost, l.host[req.URL.Host])
	l.mu.Unlock()
	time.Sleep(time.Second)
	l.mu.Lock()
	l.now--
	l.host[req.URL.Host]--
	l.mu.Unlock()
	return answer(req, 200, nil, "words"), nil
}

func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for host := range 100 {
			for page := range 3 {
				urls = append(urls, fmt.Sprintf("http://h%d.test/%d", host, page))
			}
		}
		l := &load{host: map[string]int{}}
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(l.request)})
		// Fetchers of several episodes share the limits.
		var work sync.WaitGroup
		for _, each := range []*fetch.Fetcher{f, f.With(trip(l.request))} {
			work.Go(func() {
				if _, err := each.Read(t.Context(), urls); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if l.most != 64 || l.mostPerHost != 2 {
			t.Errorf("%d at once, want 64; %d of a host, want 2", l.most, l.mostPerHost)
		}
	})
}

// Large pages are in memory a few at a time, with what is made of them.
func TestLargeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		extract := func(_ context.Context, page source.Page, _ []byte, _ http.Header) source.Page {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return page
		}
		body := strings.Repeat(" ", 1<<20+1)
		f := fetch.New(fetch.Config{Guard: world(t), Extract: extract, Transport: trip(func(req *http.Request) (*http.Response, error) {
			return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, body), nil
		})})
		var urls []string
		for host := range 20 {
			urls = append(urls, fmt.Sprintf("http://h%d.test/", host))
		}
		pages, err := f.Read(t.Context(), urls)
		if err != nil || most != 6 {
			t.Errorf("%d at once, want 6 of 10 MB in 64 MB; %v", most, err)
		}
		for _, page := range pages {
			if page.Error != nil {
				t.Errorf("%s: %v", page.URL, page.Error)
			}
		}
	})
}

// Pages that wait for a slow host do not run out of time, and do not keep others from theirs.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "slow.test" {
				time.Sleep(50 * time.Second)
			}
			return answer(req, 200, nil, "words"), nil
		})})
		var slow []string
		for i := range 100 {
			slow = append(slow, fmt.Sprint("http://slow.test/", i))
		}
		var work sync.WaitGroup
		work.Go(func() {
			pages, err := f.Read(t.Context(), slow)
			if err != nil {
				t.Error(err)
			}
			for _, page := range pages {
				if page.Error != nil {
					t.Errorf("%s: %v", page.URL, page.Error)
				}
			}
		})
		synctest.Wait()
		began := time.Now()
		if page := read(t, f, "http://quick.test/"); page.Error != nil || time.Since(began) != 0 {
			t.Errorf("%v after %s", page.Error, time.Since(began))
		}
		work.Wait()
	})
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		name     string
		header   http.Header
		least    time.Duration
		most     time.Duration
		requests int
	}{
		{"at the site's wish", http.Header{"Retry-After": {"7"}}, 14 * time.Second, 14 * time.Second, 3},
		{"at a date", http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:09 GMT"}}, 9 * time.Second, 11 * time.Second, 3},
		// synctest begins in 2000
		{"later than we wait", http.Header{"Retry-After": {"21"}}, 0, 0, 1},
		{"nonsense", http.Header{"Retry-After": {"-5"}}, 750 * time.Millisecond, 2250 * time.Millisecond, 3},
		{"by ourselves", nil, 750 * time.Millisecond, 2250 * time.Millisecond, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(func(req *http.Request) (*http.Response, error) {
					requests++
					return answer(req, 503, tt.header.Clone(), ""), nil
				})})
				began := time.Now()
				fails(t, read(t, f, "http://site.test/"), source.Outage, source.Unavailable)
				if took := time.Since(began); took < tt.least || took > tt.most || requests != tt.requests {
					t.Errorf("%d requests in %s, want %d in %s to %s", requests, took, tt.requests, tt.least, tt.most)
				}
			})
		})
	}
}

// What a transport says of itself is not tried again.
func TestReplayMiss(t *testing.T) {
	requests := 0
	miss := trip(func(*http.Request) (*http.Response, error) {
		requests++
		return nil, fmt.Errorf("tape: %w", source.Errorf(source.Outage, source.ReplayMiss, "not recorded"))
	})
	f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: miss})
	fails(t, read(t, f, "http://site.test/"), source.Outage, source.ReplayMiss)
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, context.Cause(req.Context())
		})})
		began := time.Now()
		fails(t, read(t, f, "http://site.test/"), source.Outage, source.Unavailable)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("gave up after %s", took)
		}
	})
	// The minute is for all tries together.
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(func(req *http.Request) (*http.Response, error) {
			requests++
			select {
			case <-time.After(40 * time.Second):
				return answer(req, 503, nil, ""), nil
			case <-req.Context().Done():
				return nil, context.Cause(req.Context())
			}
		})})
		began := time.Now()
		fails(t, read(t, f, "http://site.test/"), source.Outage, source.Unavailable)
		if took := time.Since(began); took > 62*time.Second || requests != 2 {
			t.Errorf("%d requests in %s", requests, took)
		}
	})
}

func TestPoliteness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := map[string]time.Time{}
		closest, most := time.Hour, 0
		var mu sync.Mutex
		f := fetch.New(fetch.Config{Guard: world(t), Extract: plain, Transport: trip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				return answer(req, 404, nil, ""), nil
			}
			mu.Lock()
			defer mu.Unlock()
			if before, ok := last[req.URL.Host]; ok {
				closest = min(closest, time.Since(before))
			}
			last[req.URL.Host] = time.Now()
			most++
			return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, links(req.URL.Path, 20)), nil
		})})
		began := time.Now()
		var work sync.WaitGroup
		for range 2 {
			work.Go(func() {
				pages, err := f.Crawl(t.Context(), source.Crawl{URL: "http://site.test/", Limit: 10, Depth: 1})
				if err != nil || len(pages) != 10 {
					t.Errorf("%d pages, %v", len(pages), err)
				}
			})
		}
		work.Wait()
		if closest < 500*time.Millisecond || most != 20 || time.Since(began) > 11*time.Second {
			t.Errorf("%d requests in %s, at least %s apart", most, time.Since(began), closest)
		}
		// Single pages are not held up.
		began = time.Now()
		read(t, f, "http://site.test/")
		if read(t, f, "http://site.test/"); time.Since(began) != 0 {
			t.Errorf("two pages took %s", time.Since(began))
		}
	})
}

// links is a page with n links to pages below it.
func links(path string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "page %s", path)
	for i := range n {
		fmt.Fprintf(&b, ` <a href="%s/%d">`, strings.TrimSuffix(path, "/"), i)
	}
	return b.String()
}

// A crawl keeps the distance that a site's robots.txt asks for, within bounds.
func TestCrawlDelay(t *testing.T) {
	for _, tt := range []struct {
		rules string
		want  time.Duration
	}{
		{"User-agent: *\nDisallow: /x\n", 500 * time.Millisecond},
		{"User-agent: *\nCrawl-delay: 3 # seconds\nDisallow: /x\n", 3 * time.Second},
		{"User-agent: other\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-Delay: 0.1\n", 500 * time.Millisecond},
		{"User-agent: trajgen\ncrawl-delay: 100000\n", 10 * time.Second},
		{"User-agent: *\nCrawl-delay: soon\nDisallow: /x\n", 500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			f := fetch.New(fetch.Config{Guard: world(t), InOrder: true, Now: time.Now, Transport: trip(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/robots.txt" {
					return answer(req, 200, nil, tt.rules), nil
				}
				at = append(at, time.Now())
				return answer(req, 200, http.Header{"Content-Type": {"text/html"}}, req.URL.Path), nil
			}), Extract: func(_ context.Context, page source.Page, _ []byte, _ http.Header) source.Page {
				for i := range 5 {
					page.Links = append(page.Links, source.Link{URL: fmt.Sprintf("http://h1.test/%d", i)})
				}
				return page
			}})
			if _, err := f.Crawl(t.Context(), source.Crawl{URL: "http://h1.test/", Limit: 4, Depth: 1}); err != nil {
				t.Fatal(err)
			}
			if len(at) != 4 || at[3].Sub(at[2]) != tt.want {
				t.Errorf("%q: %d pages, at %v", tt.rules, len(at), at)
			}
		})
	}
}
