package sites_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"trajgen/tools/web/sites"
)

// names are those of all sites.
func names() (all []string) {
	for _, site := range sites.All() {
		all = append(all, site.Name)
	}
	return all
}

func TestOpen(t *testing.T) {
	for name, want := range map[string]string{
		"shpo": `unknown site "shpo" (have feed, forms, forum, frames, hostile, shop, spa, wiki)`, "": `unknown site ""`,
		"shop:": `the seed of site shop is ""`, "shop:-1": `the seed of site shop is "-1", want a number as in shop:7`,
	} {
		if _, err := sites.Open([]string{"wiki", name}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Open(%q): %v, want %s", name, err, want)
		}
	}
	if err := sites.Check([]string{"shop:18446744073709551615", "wiki"}); err != nil {
		t.Error(err)
	}
	if err := sites.Check([]string{"shop", "shop:7", "shpo"}); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two mistakes: %v", err)
	}
}

var links = regexp.MustCompile(`(?:href|src)="([^"]+)"`)

// TestLinks visits all that the first pages of the sites lead to: there is each page, image and script, and it has a heading.
func TestLinks(t *testing.T) {
	for _, site := range sites.All() {
		v := visit(t, site.Name)
		v.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
			if len(via) > 4 {
				return http.ErrUseLastResponse
			}
			return nil
		}
		first := "http://" + site.Hosts[0] + "/"
		seen, next := map[string]bool{first: true}, []string{first}
		for ; len(next) > 0; next = next[1:] {
			at, _ := url.Parse(next[0])
			resp, err := v.Get(next[0])
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			resp.Body.Close()
			page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
			if resp.StatusCode >= 400 && !strings.Contains(next[0], "/canary/") {
				t.Errorf("%s: %d", next[0], resp.StatusCode)
			}
			if page && !strings.Contains(string(body), "<title>") && !slices.Contains([]string{"/endless", "/bomb"}, at.Path) &&
				resp.StatusCode == 200 {
				t.Errorf("%s has no title", next[0])
			}
			if !page {
				continue
			}
			for _, found := range links.FindAllStringSubmatch(string(body), -1) {
				to, err := at.Parse(found[1])
				if err != nil {
					t.Errorf("%s: %v", next[0], err)
					continue
				}
				to.Fragment = ""
				if v.set.Serves(to.Hostname()) && !seen[to.String()] && len(seen) < 200 {
					seen[to.String()] = true
					next = append(next, to.String())
				}
			}
		}
		if len(seen) < 4 {
			t.Errorf("%s has %d addresses", site.Name, len(seen))
		}
	}
}

// TestSeeds holds that a seed decides all that a site says, and that another one says something else.
func TestSeeds(t *testing.T) {
	paths := map[string][]string{
		"shop": {"/"}, "forum": {"/thread/1", "/thread/2", "/thread/3"}, "wiki": {"/wiki/Corm"}, "forms": {"/"},
		"spa":    {"/api/tasks"},
		"frames": {"/inner/same", "/inner/cross", "/inner/popup"}, "feed": {"/items?from=0", "/rows?from=700"},
		"hostile": {"/news"},
	}
	said := func(name, seed string) string {
		v := visit(t, name+seed)
		var all strings.Builder
		for _, path := range paths[name] {
			all.WriteString(v.get("http://" + name + ".test" + path))
		}
		state, err := v.set.State(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(state)
		return all.String()
	}
	for _, name := range names() {
		first, again := said(name, ":7"), said(name, ":7")
		if said(name, "") != said(name, ":0") || first != again {
			t.Errorf("%s differs with one seed", name)
		}
		others := map[string]bool{}
		for seed := range 4 {
			others[said(name, fmt.Sprint(":", seed))] = true
		}
		if len(others) < 2 {
			t.Errorf("%s is the same with four seeds", name)
		}
	}
}

// TestStates holds that no answer has the state, that states stay small whatever is sent, and that many may ask at a time.
func TestStates(t *testing.T) {
	set, err := sites.Open(names())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: set}
	long := strings.Repeat("x", 5_000)
	var work sync.WaitGroup
	for _, address := range []string{
		"http://shop.test/login", "http://shop.test/product/100/review", "http://forum.test/new", "http://wiki.test/edit/" + long,
		"http://wiki.test/edit/Corm", "http://forms.test/form/contact", "http://forms.test/form/pizza",
		"http://frames.test/inner/same",
		"http://hostile.test/guestbook", "http://hostile.test/collect", "http://hostile.test/canary/" + long,
		"http://feed.test/like/7",
		"http://spa.test/api/tasks", "http://feed.test/.state",
	} {
		for i := range 15 {
			work.Go(func() {
				form := url.Values{"text": {long}, "data": {long}, "note": {long}, "name": {long}, "size": {"Small"},
					"base": {fmt.Sprint(i)}}
				for n := range 40 {
					form.Add("toppings", "Olives")
					form.Set(fmt.Sprint("field", n), long[:1000])
				}
				resp, err := client.PostForm(address, form)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
	}
	work.Wait()
	for _, name := range names() {
		state, err := set.State(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(state) > 3<<20 {
			t.Errorf("the state of %s has %d bytes", name, len(state))
		}
		var requests struct {
			Requests  []json.RawMessage
			Requested int
		}
		if err := json.Unmarshal(state, &requests); err != nil || len(requests.Requests) > 300 ||
			requests.Requested < len(requests.Requests) {
			t.Errorf("%s lists %d of %d requests, %v", name, len(requests.Requests), requests.Requested, err)
		}
	}
	resp, err := client.Post("http://shop.test/cart", "text/plain", io.LimitReader(strings.NewReader(strings.Repeat(long,
		2000)), 9<<20))
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("9 MB: %v, %v", resp, err)
	}
	for _, address := range []string{"http://nowhere.test/", "http://shop.test:22/"} {
		if _, err := client.Get(address); err == nil {
			t.Errorf("%s was answered", address)
		}
	}
	for _, address := range []string{"HTTP://SHOP.TEST/", "https://shop.test/", "http://shop.test:80/"} {
		if resp, err := client.Get(address); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v, %v", address, resp, err)
		}
	}
}

// TestHandler serves people, whose addresses end with localhost.
func TestHandler(t *testing.T) {
	set, err := sites.Open([]string{"shop", "frames"})
	if err != nil {
		t.Fatal(err)
	}
	for _, states := range []bool{true, false} {
		server := httptest.NewServer(set.Handler(states))
		defer server.Close()
		get := func(host, path string) (int, string) {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body)
		}
		for _, tt := range []struct {
			host, path, want string
			status           int
		}{
			{"shop.localhost:8080", "/", "<h1>Things for the house</h1>", 200},
			{"Shop.localhost", "/product/100", "Alder Kettle", 200},
			{"frames.localhost:8080", "/cross", `src="http://frames-other.localhost:8080/inner/cross"`, 200},
			{"forum.localhost:8080", "/", "there is no site at forum.test", 404},
			{"localhost:8080", "/", "http://frames.localhost:8080/\nhttp://shop.localhost:8080/\n", 200},
			{"localhost:8080", "/state/forum", map[bool]string{true: "there is no site", false: "http://shop"}[states],
				map[bool]int{true: 404, false: 200}[states]},
			{"localhost:8080", "/state/shop", map[bool]string{true: `"cart":[]`, false: "http://shop"}[states], 200},
			{"shop.localhost:8080", "/state/shop", "There is nothing at /state/shop", 404},
		} {
			if status, got := get(tt.host, tt.path); status != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("states %v: %s%s: %d %s", states, tt.host, tt.path, status, got)
			}
		}
	}
}

func FuzzRequests(f *testing.F) {
	set, err := sites.Open(names())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("shop", "POST", "/cart?id=100", "application/x-www-form-urlencoded", "id=100&quantity=-1&do=add")
	f.Add("forms", "POST", "/form/document?step=0", "multipart/form-data; boundary=x",
		"--x\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\nb\r\n--x--")
	f.Add("spa", "PATCH", "/api/tasks/1", "application/json", `{"lane":3}`)
	f.Add("forms", "POST", "/form/stay?step=0", "application/x-www-form-urlencoded", "arrival=2027-05-09&departure=&guests=2")
	f.Add("wiki", "POST", "/history/Corm/1", "", "")
	f.Fuzz(func(t *testing.T, site, method, path, kind, body string) {
		at, err := url.Parse("http://" + site + ".test" + path)
		if err != nil || !set.Serves(at.Hostname()) {
			return
		}
		req := &http.Request{Method: method, URL: at, Header: http.Header{"Content-Type": {kind}},
			Body: io.NopCloser(strings.NewReader(body))}
		resp, err := set.RoundTrip(req.WithContext(t.Context()))
		if err != nil && strings.Contains(err.Error(), "listen on port") {
			return
		}
		if err != nil || resp.StatusCode >= 500 {
			t.Fatalf("%s %s: %v, %v", method, at, resp, err)
		}
		resp.Body.Close()
	})
}
