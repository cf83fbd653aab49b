package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// got is a request that a server got.
type got struct {
	method, path, query, body string
	header                    http.Header
}

// answer is what a server says.
type answer struct {
	status int
	body   string
	header map[string]string
}

// fake is a server that answers with one answer after the other, and with the last one again and again.
type fake struct {
	URL     string
	mu      sync.Mutex
	answers []answer
	got     []got
}

func newFake(t testing.TB, answers ...answer) *fake {
	f := &fake{answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.got = append(f.got, got{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header})
		a := f.answers[min(len(f.got), len(f.answers))-1]
		f.mu.Unlock()
		if strings.HasPrefix(a.body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.status)
		io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// open opens a provider that asks the fake, with real connections.
func (f *fake) open(t testing.TB, name string, change func(*provider.Config)) provider.Provider {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := provider.Config{Name: name, BaseURL: f.URL, Key: key, Transport: transport, Now: time.Now}
	if name == "generic" {
		c.BaseURL, c.Generic = "", described(f.URL)
	}
	if change != nil {
		change(&c)
	}
	p, err := provider.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != name || !strings.HasPrefix(p.Version(), name+"/") {
		t.Errorf("%s is %s in version %s", name, p.Name(), p.Version())
	}
	return p
}

func hasty(c *provider.Config) { c.Hasty = true }

var query = source.Query{Text: `best "tea" & more`, Limit: 2}

// TestConformance ranges over all providers: each is asked as it is documented, and each kind of answer means the same.
func TestConformance(t *testing.T) {
	for _, name := range provider.Names() {
		f, ok := fixtures[name]
		if !ok {
			t.Fatalf("%s has no fixture", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, want := answer{status: 200, body: f.right}, found
			if f.undated {
				want = []source.Result{found[0], found[1]}
				want[0].Published = ""
			}
			search := func(t *testing.T, change func(*provider.Config), answers ...answer) (*fake, []source.Result, error) {
				t.Helper()
				server := newFake(t, answers...)
				results, err := server.open(t, name, change).(source.Searcher).Search(t.Context(), query)
				return server, results, err
			}
			t.Run("right", func(t *testing.T) {
				server, results, err := search(t, nil, right)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, results); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				f.check(t, server.got[0])
			})
			t.Run("empty", func(t *testing.T) {
				if _, results, err := search(t, nil, answer{status: 200, body: f.empty}); err != nil || len(results) != 0 {
					t.Errorf("%v, %v", results, err)
				}
			})
			t.Run("too much to do, then right", func(t *testing.T) {
				server, results, err := search(t, hasty, answer{429, "{}", map[string]string{"Retry-After": "1"}}, right)
				if err != nil || len(results) != 2 || len(server.got) != 2 {
					t.Errorf("%d results, %d requests: %v", len(results), len(server.got), err)
				}
			})
			t.Run("fails for ever", func(t *testing.T) {
				server, _, err := search(t, hasty, answer{status: 500, body: `{"error":"no good"}`})
				expect(t, err, source.Unavailable, source.Outage)
				if len(server.got) != 4 {
					t.Errorf("%d requests", len(server.got))
				}
			})
			for _, tt := range []struct {
				name   string
				answer answer
				class  string
				blame  source.Blame
			}{
				{"wrong key", answer{status: 401, body: `{"error":"bad key ` + key + `"}`}, source.Refused, source.Operator},
				{"no money", answer{status: 402, body: `{"error":"pay"}`}, source.Refused, source.Operator},
				{"quota", answer{status: 432, body: `{"detail":{"error":"plan"}}`}, source.Refused, source.Operator},
				{"refused", answer{status: 400, body: `{"error":"the query is too long for ` + key + `"}`}, "http_400", source.Agent},
				{"no such thing", answer{status: 404, body: "not found"}, "http_404", source.Operator},
				{"elsewhere", answer{302, "", map[string]string{"Location": "https://elsewhere.test/"}}, source.Malformed, source.Operator},
				{"half an answer", answer{status: 200, body: f.right[:len(f.right)/5]}, source.Malformed, source.Outage},
				{"a page", answer{status: 200, body: "<!DOCTYPE html><html><body>Please log in</body></html>"}, source.Malformed,
					source.Outage},
				{"nothing", answer{status: 200}, source.Malformed, source.Outage},
				{"an error in a good answer", answer{status: 200, body: f.failed}, source.Unavailable, source.Outage},
				{"more than 10 MB", answer{status: 200, body: f.many(10<<20 + 4096)}, source.TooLarge, source.Outage},
			} {
				t.Run(tt.name, func(t *testing.T) {
					server, _, err := search(t, nil, tt.answer)
					expect(t, err, tt.class, tt.blame)
					if len(server.got) != 1 {
						t.Errorf("%d requests", len(server.got))
					}
				})
			}
			t.Run("10 MB", func(t *testing.T) {
				_, results, err := search(t, nil, answer{status: 200, body: f.many(10<<20 - 4096)})
				if err != nil || len(results) != query.Limit {
					t.Errorf("%d results, %v", len(results), err)
				}
			})
			t.Run("no connection", func(t *testing.T) {
				server := newFake(t, right)
				p := server.open(t, name, func(c *provider.Config) {
					c.Hasty = true
					c.Transport = transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused: " + key) })
				})
				_, err := p.(source.Searcher).Search(t.Context(), query)
				expect(t, err, source.Unavailable, source.Outage)
			})
			t.Run("not recorded", func(t *testing.T) {
				asked := 0
				missing := source.Errorf(source.Outage, source.ReplayMiss, "missing")
				p := newFake(t, right).open(t, name, func(c *provider.Config) {
					c.Transport = transport(func(*http.Request) (*http.Response, error) { asked++; return nil, missing })
				})
				_, err := p.(source.Searcher).Search(t.Context(), query)
				expect(t, err, source.ReplayMiss, source.Outage)
				if asked != 1 {
					t.Errorf("%d requests", asked)
				}
			})
			t.Run("cancelled", func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := errors.New("stop")
				p := newFake(t, right).open(t, name, func(c *provider.Config) {
					c.Transport = transport(func(r *http.Request) (*http.Response, error) {
						cancel(stop)
						return nil, r.Context().Err()
					})
				})
				if _, err := p.(source.Searcher).Search(ctx, query); !errors.Is(err, stop) {
					t.Errorf("error %v", err)
				}
			})
			f.filters(t, name)
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// expect holds what an error is, and that it tells no key.
func expect(t *testing.T, err error, class string, blame source.Blame) {
	t.Helper()
	e, ok := errors.AsType[*source.Error](err)
	if !ok {
		t.Fatalf("error %v is of no class, want %s", err, class)
	}
	if e.Class != class || e.Blame != blame {
		t.Errorf("error %s of %d: %v; want %s of %d", e.Class, e.Blame, e, class, blame)
	}
	if strings.Contains(err.Error(), key) {
		t.Errorf("the error tells the key: %v", err)
	}
	if len(e.Message) > 500 {
		t.Errorf("the error has %d bytes", len(e.Message))
	}
}

// check holds that a request is as documented.
func (f fixture) check(t *testing.T, r got) {
	t.Helper()
	if r.method != f.method || r.path != f.path || r.query != f.query {
		t.Errorf("request %s %s?%s, want %s %s?%s", r.method, r.path, r.query, f.method, f.path, f.query)
	}
	for name, want := range f.header {
		if have := r.header.Get(name); have != want {
			t.Errorf("header %s is %q, want %q", name, have, want)
		}
	}
	sameJSON(t, r.body, f.body)
}

// sameJSON compares two texts, as JSON where they are.
func sameJSON(t *testing.T, have, want string) {
	t.Helper()
	var a, b any = have, want
	if strings.HasPrefix(want, "{") {
		if err := errors.Join(json.Unmarshal([]byte(have), &a), json.Unmarshal([]byte(want), &b)); err != nil {
			t.Fatalf("%s: %v", have, err)
		}
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// filters holds that each field of a query reaches the provider, or is refused.
func (f fixture) filters(t *testing.T, name string) {
	for filter, q := range map[string]source.Query{
		"language": {Text: "q", Limit: 1000, Language: "de"}, "site": {Text: "q", Limit: 1000, Site: "s.test"}, "after": {Text: "q",
			Limit: 1000, After: "2024-01-02"},
	} {
		t.Run(filter, func(t *testing.T) {
			server := newFake(t, answer{status: 200, body: f.right})
			_, err := server.open(t, name, nil).(source.Searcher).Search(t.Context(), q)
			if f.filtered[filter] == "" {
				expect(t, err, source.Unsupported, source.Agent)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := server.got[0]
			if !strings.Contains(r.path+"?"+r.query+" "+r.body, f.filtered[filter]) {
				t.Errorf("%s?%s %s has no %s", r.path, r.query, r.body, f.filtered[filter])
			}
		})
	}
}

// TestLimits holds that more results are not asked for than a provider gives, and no fewer than one.
func TestLimits(t *testing.T) {
	for name, wants := range map[string][2]string{
		"tavily": {`"max_results":20`, `"max_results":1`}, "exa": {`"numResults":100`, `"numResults":1`},
		"parallel":  {`"max_results":40`, `"max_results":1`},
		"firecrawl": {`"limit":100`, `"limit":1`}, "brave": {"count=20&", "count=1&"}, "serper": {`"num":100`, `"num":1`},
		"searchr1": {`"topk":5000`, `"topk":1`},
	} {
		for i, limit := range []int{5000, -1} {
			server := newFake(t, answer{status: 200, body: fixtures[name].empty})
			if _, err := server.open(t, name, nil).(source.Searcher).Search(t.Context(), source.Query{Text: "q",
				Limit: limit}); err != nil {
				t.Fatal(err)
			}
			if r := server.got[0]; !strings.Contains(r.query+r.body, wants[i]) {
				t.Errorf("%s up to %d: %s%s", name, limit, r.query, r.body)
			}
		}
	}
}

// TestPauses holds that a server that has too much to do is left alone for as long as it says, or for a moment.
func TestPauses(t *testing.T) {
	right := answer{status: 200, body: fixtures["exa"].right}
	date := map[string]string{"Date": "Fri, 27 Nov 2026 07:00:00 GMT", "Retry-After": "Fri, 27 Nov 2026 07:00:01 GMT"}
	for _, tt := range []struct {
		name    string
		answers []answer
		least   time.Duration
	}{
		{"says nothing", []answer{{status: 503}, {status: 500}, right}, 450 * time.Millisecond},
		{"says seconds", []answer{{429, "{}", map[string]string{"Retry-After": "1"}}, right}, time.Second},
		{"says a date", []answer{{429, "{}", date}, right}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := newFake(t, tt.answers...)
			began := time.Now()
			results, err := server.open(t, "exa", nil).(source.Searcher).Search(t.Context(), query)
			if took := time.Since(began); err != nil || len(results) != 2 || len(server.got) != len(tt.answers) || took < tt.least {
				t.Errorf("%d results, %d requests after %v: %v", len(results), len(server.got), took, err)
			}
		})
	}
}

// TestDeadline holds that a pause that would outlast the caller's time is not begun.
func TestDeadline(t *testing.T) {
	server := newFake(t, answer{429, "{}", map[string]string{"Retry-After": "3600"}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	_, err := server.open(t, "exa", nil).(source.Searcher).Search(ctx, query)
	expect(t, err, source.Unavailable, source.Outage)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestForbidden holds who can mend a 403 of providers that have no keys.
func TestForbidden(t *testing.T) {
	for name, blame := range map[string]source.Blame{"searxng": source.Operator, "duckduckgo": source.Outage,
		"exa": source.Operator} {
		server := newFake(t, answer{status: 403, body: "no"})
		_, err := server.open(t, name, hasty).(source.Searcher).Search(t.Context(), query)
		class := source.Refused
		if blame == source.Outage {
			class = source.Unavailable
		}
		expect(t, err, class, blame)
	}
}

// TestPick holds in which order providers are chosen.
func TestPick(t *testing.T) {
	for _, tt := range []struct {
		set  string
		want string
	}{
		{"", ""}, {"SERPER_API_KEY BRAVE_SEARCH_API_KEY", "brave"}, {"BRAVE_SEARCH_API_KEY SEARXNG_URL", "searxng"},
		{"SEARXNG_URL FIRECRAWL_API_KEY", "firecrawl"}, {"PARALLEL_API_KEY EXA_API_KEY TAVILY_API_KEY", "tavily"}, {"SEARCHR1_URL", ""},
	} {
		c, ok := provider.Pick(func(name string) string {
			if strings.Contains(tt.set, name) {
				return "https://value-of-" + strings.ToLower(name)
			}
			return ""
		})
		if c.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("with %s: %+v", tt.set, c)
		}
		if ok && (c.Key != "") == (c.BaseURL != "") {
			t.Errorf("with %s: %+v", tt.set, c)
		}
	}
}

// TestOpen holds what is said about a wrong configuration.
func TestOpen(t *testing.T) {
	none := transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("asked") })
	for _, tt := range []struct {
		c    provider.Config
		want string
	}{
		{provider.Config{Name: "goggle"}, `unknown web provider "goggle" (have brave, duckduckgo,`},
		{provider.Config{Name: "exa"}, "web provider exa needs a key: set EXA_API_KEY"},
		{provider.Config{Name: "searxng"}, `web provider searxng: "" is not a base URL`},
		{provider.Config{Name: "exa", Key: "k", BaseURL: "ftp://x"}, `"ftp://x" is not a base URL`},
		{provider.Config{Name: "exa", Key: "k", Generic: &provider.Generic{}}, "belongs to generic"},
		{provider.Config{Name: "generic"}, "belongs to generic"},
		{provider.Config{Name: "generic", Generic: &provider.Generic{}}, "it needs search or read"},
		{provider.Config{Name: "generic", Generic: &provider.Generic{Search: &provider.Template{URL: "http://a"}}},
			"search: list is missing\nlink is missing"},
		{provider.Config{Name: "generic", Generic: &provider.Generic{Read: &provider.Template{URL: "http://a/{{.Quarry}}",
			Text: "answer.x"}}}, "can't evaluate field Quarry"},
		{provider.Config{Name: "generic", Generic: &provider.Generic{Read: &provider.Template{URL: "http://a", Text: "item.x"}}},
			"unknown name item"},
	} {
		tt.c.Transport, tt.c.Now = none, time.Now
		if _, err := provider.Open(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %s", tt.c, err, tt.want)
		}
	}
	// A recording that is played needs no key.
	if _, err := provider.Open(provider.Config{Name: "exa", Hasty: true, Transport: none, Now: time.Now}); err != nil {
		t.Error(err)
	}
}

// TestGenericVersion holds that another description is another provider for a recording.
func TestGenericVersion(t *testing.T) {
	server := newFake(t, answer{status: 200})
	first := server.open(t, "generic", nil).Version()
	changed := described(server.URL)
	changed.Search.Title = "item.name"
	second := server.open(t, "generic", func(c *provider.Config) { c.Generic = changed }).Version()
	if again := server.open(t, "generic", nil).Version(); first == second || first != again {
		t.Errorf("versions %s, %s and %s", first, second, again)
	}
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"results":[{"url":"https://a.test/","title":"Tea","content":"All about tea"}]}`)
	}))
	defer server.Close()
	getenv := func(name string) string { return map[string]string{"SEARXNG_URL": server.URL}[name] }

	c, _ := provider.Pick(getenv)
	c.Transport, c.Now = http.DefaultTransport, time.Now
	p, err := provider.Open(c)
	if err != nil {
		panic(err)
	}
	results, err := p.(source.Searcher).Search(context.Background(), source.Query{Text: "tea", Limit: 5})
	fmt.Println(p.Version(), results, err)
	// Output: searxng/1 [{Tea https://a.test/ All about tea }] <nil>
}
