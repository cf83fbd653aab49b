package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// told is a page in one line.
func told(p source.Page) string {
	if p.Error != nil {
		return fmt.Sprintf("%s %d %s", p.URL, p.Status, p.Error.Class)
	}
	return fmt.Sprintf("%s %d %s: %s", p.URL, p.Status, p.Title, p.Text)
}

// TestRead holds how pages are read, one of which does not exist.
func TestRead(t *testing.T) {
	const one, gone = "https://a.test/1", "https://b.test/gone"
	for name, tt := range map[string]struct {
		path, body string // of the first request
		answers    []answer
		want       []string
	}{
		"tavily": {
			"/extract", `{"urls":["https://a.test/1","https://b.test/gone"],"extract_depth":"basic","format":"markdown"}`,
			[]answer{{status: 200, body: `{"results":[{"url":"https://a.test/1/","raw_content":"# One","images":[]}],
				"failed_results":[{"url":"https://b.test/gone","error":"404"}]}`}},
			[]string{one + " 200 : # One", gone + " 0 unavailable"},
		},
		"exa": {
			"/contents", `{"urls":["https://a.test/1","https://b.test/gone"],"text":true}`,
			[]answer{{status: 200, body: `{"requestId":"r","results":[{"id":"https://a.test/1","url":"https://a.test/1","title":"T",
				"text":"One","publishedDate":"2024-01-02"}],"statuses":[
				{"id":"https://a.test/1","status":"success"},{"id":"https://b.test/gone","status":"error","error":{"tag":"CRAWL_NOT_FOUND",
				"httpStatusCode":404}}]}`}},
			[]string{one + " 200 T: One", gone + " 404 http_404"},
		},
		"parallel": {
			"/v1/extract", `{"urls":["https://a.test/1","https://b.test/gone"],"advanced_settings":{"full_content":true}}`,
			[]answer{{status: 200, body: `{"extract_id":"e","results":[{"url":"https://a.test/1","title":"T","publish_date":"2024-01-02",
				"excerpts":["O"],"full_content":"One"}],
				"errors":[{"url":"https://b.test/gone","error_type":"fetch_error","http_status_code":500,"content":"Error fetching"}]}`}},
			[]string{one + " 200 T: One", gone + " 500 unavailable"},
		},
		"firecrawl": {
			"/v2/scrape", `{"url":"https://a.test/1","formats":["markdown"],"onlyMainContent":true}`,
			[]answer{
				{status: 200, body: `{"success":true,"data":{"markdown":"# One","metadata":{"title":"T","sourceURL":"https://a.test/1",
				"statusCode":200}}}`},
				{status: 200, body: `{"success":true,"data":{"markdown":"Not here","metadata":{"title":"Oh",
				"sourceURL":"https://b.test/gone","statusCode":404}}}`},
			},
			[]string{one + " 200 T: # One", gone + " 404 http_404"},
		},
		"serper": {
			"/scrape", `{"url":"https://a.test/1","includeMarkdown":true}`,
			[]answer{
				{status: 200, body: `{"text":"One","markdown":"# One","metadata":{"title":"T","og:site_name":"A"},"credits":2}`},
				{status: 400, body: `{"message":"Scraping failed.","statusCode":400}`},
			},
			[]string{one + " 200 T: # One", gone + " 0 http_400"},
		},
		"generic": {
			"/v9/read", "",
			[]answer{{status: 200, body: `{"t":"T","md":"# One"}`}, {status: 400, body: `{"error":"none"}`}},
			[]string{one + " 200 T: # One", gone + " 0 http_400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Those that read one page at a time are asked for one at a time, so that it is known which answer is whose.
			server := newFake(t, tt.answers...)
			r := server.open(t, name, hasty).(source.Reader)
			asked := [][]string{{one, gone}}
			if len(tt.answers) > 1 {
				asked = [][]string{{one}, {gone}}
			}
			var pages []source.Page
			for _, urls := range asked {
				read, err := r.Read(t.Context(), urls)
				if err != nil {
					t.Fatal(err)
				}
				pages = append(pages, read...)
			}
			for i, p := range pages {
				if told(p) != tt.want[i] || p.Extractor != name || p.Error == nil && (p.Bytes != len(p.Text) || len(p.Digest) != 64) {
					t.Errorf("%+v, want %s", p, tt.want[i])
				}
			}
			first := server.got[0]
			if first.path != tt.path {
				t.Errorf("path %s, want %s", first.path, tt.path)
			}
			sameJSON(t, first.body, tt.body)
		})
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSerperHosts holds that Serper reads pages at another host than it searches.
func TestSerperHosts(t *testing.T) {
	var asked []string
	p, err := provider.Open(provider.Config{Name: "serper", Key: key, Now: time.Now, Hasty: true, Transport: trip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		return nil, errors.New("no network")
	})})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.(source.Searcher).Search(t.Context(), source.Query{Text: "q"})
	_, _ = p.(source.Reader).Read(t.Context(), []string{"https://a.test/"})
	if diff := cmp.Diff([]string{"https://google.serper.dev/search", "https://scrape.serper.dev/"}, slices.Compact(asked)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestReadRefused holds that what concerns all pages is an error of the call, and what concerns one is that page's.
func TestReadRefused(t *testing.T) {
	for _, name := range []string{"tavily", "exa", "parallel", "firecrawl", "serper", "generic"} {
		refused := newFake(t, answer{status: 401, body: "{}"}).open(t, name, hasty).(source.Reader)
		_, err := refused.Read(t.Context(), []string{"https://a.test/", "https://b.test/"})
		expect(t, err, source.Refused, source.Operator)
	}
	failing := newFake(t, answer{status: 503, body: "{}"}).open(t, "firecrawl", hasty).(source.Reader)
	pages, err := failing.Read(t.Context(), []string{"https://a.test/", "https://b.test/"})
	if err != nil || len(pages) != 2 || pages[1].URL != "https://b.test/" {
		t.Fatalf("%v, %v", pages, err)
	}
	expect(t, pages[1].Error, source.Unavailable, source.Outage)
}

var crawl = source.Crawl{URL: "https://a.test/", Instructions: "docs", Limit: 3, Depth: 2, Include: []string{"/docs/*"},
	Exclude: []string{"/docs/v[12].?"}}

func TestTavilyCrawl(t *testing.T) {
	server := newFake(t, answer{status: 200,
		body: `{"base_url":"a.test","results":[{"url":"https://a.test/1","raw_content":"One"},{"url":"https://a.test/2",
				"raw_content":"Two"}],"response_time":1}`})
	pages, err := server.open(t, "tavily", nil).(source.Crawler).Crawl(t.Context(), crawl)
	if err != nil || len(pages) != 2 || told(pages[1]) != "https://a.test/2 200 : Two" {
		t.Errorf("%v, %v", pages, err)
	}
	sameJSON(t, server.got[0].body, `{"url":"https://a.test/","instructions":"docs","limit":3,"max_depth":2,"allow_external":false,
				"extract_depth":"basic","format":"markdown",
		"select_paths":["^/docs/[^/]*$"],"exclude_paths":["^/docs/v[12]\\.[^/]$"]}`)
}

// TestFirecrawlCrawl holds that a job is begun, asked for until it ends, and gathered, with the key sent to the base URL alone.
func TestFirecrawlCrawl(t *testing.T) {
	page := func(n int) string {
		return fmt.Sprintf(`{"markdown":"Page %d","metadata":{"title":"T","sourceURL":"https://a.test/%d","statusCode":200}}`, n, n)
	}
	server := newFake(t,
		answer{status: 200, body: `{"success":true,"id":"job-1","url":"https://api.firecrawl.dev/v2/crawl/job-1"}`},
		answer{status: 200, body: `{"success":true,"status":"scraping","total":4,"completed":1,"data":[` + page(1) + `]}`},
		answer{status: 200, body: `{"success":true,"status":"completed","total":4,"completed":4,
				"next":"https://evil.test/v2/crawl/job-1?skip=2","data":[` + page(1) + "," + page(2) + `]}`},
		answer{status: 200, body: `{"success":true,"status":"completed","next":"https://evil.test/v2/crawl/job-1?skip=4",
				"data":[` + page(3) + "," + page(4) + `]}`},
	)
	pages, err := server.open(t, "firecrawl", hasty).(source.Crawler).Crawl(t.Context(), crawl)
	if err != nil || len(pages) != 3 || told(pages[2]) != "https://a.test/3 200 T: Page 3" {
		t.Fatalf("%v, %v", pages, err)
	}
	sameJSON(t, server.got[0].body, `{"url":"https://a.test/","prompt":"docs","limit":3,"maxDiscoveryDepth":2,
				"scrapeOptions":{"formats":["markdown"],"onlyMainContent":true},
		"includePaths":["^/docs/[^/]*$"],"excludePaths":["^/docs/v[12]\\.[^/]$"]}`)
	var asked []string
	for _, r := range server.got {
		asked = append(asked, r.method+" "+r.path+" "+r.query)
	}
	want := []string{"POST /v2/crawl ", "GET /v2/crawl/job-1 ", "GET /v2/crawl/job-1 ", "GET /v2/crawl/job-1 skip=2"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestFirecrawlJobs holds how a crawl that does not complete ends.
func TestFirecrawlJobs(t *testing.T) {
	began := answer{status: 200, body: `{"success":true,"id":"job-1"}`}
	for status, requests := range map[string]int{"failed": 2, "cancelled": 2, "scraping": 302} { // the last one is cancelled
		server := newFake(t, began, answer{status: 200, body: `{"success":true,"status":"` + status + `"}`})
		_, err := server.open(t, "firecrawl", hasty).(source.Crawler).Crawl(t.Context(), crawl)
		expect(t, err, source.Unavailable, source.Outage)
		if len(server.got) != requests {
			t.Errorf("%s: %d requests", status, len(server.got))
		}
	}
	// A job that may have begun is not begun again.
	for status, requests := range map[int]int{500: 1, 429: 4} {
		server := newFake(t, answer{status: status, body: "{}"})
		_, err := server.open(t, "firecrawl", hasty).(source.Crawler).Crawl(t.Context(), crawl)
		expect(t, err, source.Unavailable, source.Outage)
		if len(server.got) != requests {
			t.Errorf("status %d: %d requests", status, len(server.got))
		}
	}
	lost := newFake(t, began, answer{status: 200,
		body: `{"status":"completed","data":[{"markdown":"x"}],"next":"https://evil.test/"}`})
	_, err := lost.open(t, "firecrawl", hasty).(source.Crawler).Crawl(t.Context(), crawl)
	expect(t, err, source.Malformed, source.Outage)
	// A caller that gives up ends the wait and the job.
	server := newFake(t, began, answer{status: 200, body: `{"success":true,"status":"scraping"}`})
	ctx, cancel := context.WithCancel(t.Context())
	p := server.open(t, "firecrawl", func(c *provider.Config) {
		through := c.Transport
		c.Transport = transport(func(r *http.Request) (*http.Response, error) {
			resp, err := through.RoundTrip(r)
			cancel()
			return resp, err
		})
	})
	start := time.Now()
	_, err = p.(source.Crawler).Crawl(ctx, crawl)
	if !errors.Is(err, context.Canceled) || time.Since(start) > time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if last := server.got[len(server.got)-1]; last.method != "DELETE" || last.path != "/v2/crawl/job-1" {
		t.Errorf("the last request is %s %s", last.method, last.path)
	}
}

// TestLongQuery holds that Parallel gets a query that is too long for one as its objective.
func TestLongQuery(t *testing.T) {
	server := newFake(t, answer{status: 200, body: `{"results":[]}`})
	long := strings.Repeat("word ", 100)
	if _, err := server.open(t, "parallel", nil).(source.Searcher).Search(t.Context(), source.Query{Text: long,
		Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if body := server.got[0].body; !strings.Contains(body, `"objective":"`+long+`"`) || strings.Contains(body, `["`+long) {
		t.Errorf("body %s", body)
	}
}
