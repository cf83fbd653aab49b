package tape_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/tools/web/source"
	"trajgen/tools/web/tape"
)

// create opens a recorder that the test closes.
func create(t testing.TB, dir string, o tape.Options) *tape.Recorder {
	t.Helper()
	o.Now = time.Now
	r, err := tape.Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closed(t testing.TB, r *tape.Recorder) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, o tape.ReplayOptions) *tape.Tape {
	t.Helper()
	played, err := tape.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { played.Close() })
	return played
}

// live is a transport of its own, so that the test's connections end with it.
func live(t testing.TB) http.RoundTripper {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// ask sends a request and tells what came of it in one line.
func ask(t testing.TB, through http.RoundTripper, method, url, body string, header ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return told(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	line := fmt.Sprintf("%d %s", resp.StatusCode, text)
	if err != nil {
		line += " " + told(err)
	}
	return line
}

// told is an error by its class, where it has one.
func told(err error) string {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return fmt.Sprintf("%s %d %s", e.Class, e.Blame, e.Message)
	}
	return err.Error()
}

// counting answers each request with its path, its body and how many there were before it.
func counting(t testing.TB) *httptest.Server {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "session=verysecret")
		w.Header().Set("X-Api-Key", "verysecret")
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %d", r.URL.RequestURI(), body, n.Add(1)-1)
	}))
	t.Cleanup(server.Close)
	return server
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestOrder holds which answer a request gets: its own episode's first, else everyone's, and what comes behind the end.
func TestOrder(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	record := func(episode string, attempt int, method, path, body string) {
		t.Helper()
		ask(t, r.Play(episode, attempt).Transport("web_search", "exa/1", live(t)), method, server.URL+path, body)
	}
	record("a", 1, "GET", "/x", "")          // 0
	record("b", 1, "GET", "/x", "")          // 1
	record("a", 2, "GET", "/x", "")          // 2
	record("b", 1, "POST", "/q", `{"q":1}`)  // 3
	record("c", 1, "POST", "/q", `{ "q":1}`) // 4
	record("c", 1, "HEAD", "/h", "")         // 5
	closed(t, r)
	server.Close()

	played := open(t, dir, tape.ReplayOptions{})
	play := func(episode string) http.RoundTripper { return played.Play(episode).Transport("", "exa/1") }
	a, b, c, z := play("a"), play("b"), play("c"), play("z")
	get := func(what string, through http.RoundTripper, want string) {
		t.Helper()
		equal(t, what, ask(t, through, "GET", server.URL+"/x", ""), want)
	}
	get("z first", z, "200 /x  0")
	get("a has its last attempt", a, "200 /x  2")
	get("a again", a, "200 /x  2")
	get("b", b, "200 /x  1")
	get("z second", z, "200 /x  1")
	get("z third", z, "200 /x  2")
	get("z behind the end", z, "200 /x  2")
	get("c, which did not ask for it", c, "200 /x  0")
	post := func(what string, through http.RoundTripper, want string) {
		t.Helper()
		equal(t, what, ask(t, through, "POST", server.URL+"/q", `{"q": 1}`), want)
	}
	missing := "replay_miss 1 the recording lacks POST " + server.URL + "/q"
	post("b's POST", b, `200 /q {"q":1} 3`)
	post("b's POST behind the end, of which there are different answers", b, missing)
	post("z's POST", z, `200 /q {"q":1} 3`)
	post("z's second POST", z, `200 /q { "q":1} 4`)
	post("z's third POST", z, missing)
	equal(t, "HEAD", ask(t, z, "HEAD", server.URL+"/h", ""), "200 ")
	equal(t, "another method", ask(t, z, "PUT", server.URL+"/x", ""), "replay_miss 1 the recording lacks PUT "+server.URL+"/x")
	other := played.Play("a").Transport("", "exa/2")
	equal(t, "another provider", ask(t, other, "GET", server.URL+"/x", ""), "replay_miss 1 the recording lacks GET "+server.URL+"/x")

	stats := played.Stats()
	if stats.Hits != 12 || stats.Loose != 0 || len(stats.Misses) != 1 || stats.Misses["127.0.0.1"] != 4 {
		t.Errorf("stats %+v", stats)
	}
	if exchanges, requests := played.Size(); exchanges != 6 || requests != 3 {
		t.Errorf("%d exchanges, %d requests", exchanges, requests)
	}
}

// TestRepeatsEqualPosts holds that a POST beyond the recording is answered where all its answers are equal.
func TestRepeatsEqualPosts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "same") }))
	defer server.Close()
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	for _, episode := range []string{"a", "b"} {
		ask(t, r.Play(episode, 1).Transport("", "p", live(t)), "POST", server.URL, "q")
	}
	closed(t, r)
	through := open(t, dir, tape.ReplayOptions{}).Play("a").Transport("", "p")
	for range 3 {
		equal(t, "POST", ask(t, through, "POST", server.URL, "q"), "200 same")
	}
}

// TestKey holds which requests are the same.
func TestKey(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	host := strings.TrimPrefix(server.URL, "http://")
	r := create(t, dir, tape.Options{Secrets: []string{"k3y-of-the-run"}})
	recorded := r.Play("a", 1).Transport("", "p", live(t))
	ask(t, recorded, "GET", "http://"+host+"/%c3%a4?b=1&a=2#top", "")
	ask(t, recorded, "POST", server.URL+"/", `{"b": 1.0, "a": [1, 2], "key": "k3y-of-the-run"}`)
	ask(t, recorded, "GET", server.URL+"/s?api_key=abc&v=1", "")
	ask(t, recorded, "GET", server.URL+"/t?k=k3y-of-the-run", "")
	ask(t, recorded, "GET", server.URL+"/l?id=7", "")
	closed(t, r)
	for _, tt := range []struct {
		method, url, body string
		loose, want       bool
	}{
		{"GET", "HTTP://" + host + "/%C3%A4?b=1&a=2", "", false, true},
		{"GET", "http://user:pass@" + host + "/%C3%A4?b=1&a=2#other", "", false, true},
		{"GET", server.URL + "/%C3%A4?a=2&b=1", "", false, false},
		{"POST", server.URL, `{"a":[1,2],"key":"","b":1.0}`, false, true},
		{"POST", server.URL, `{"a":[1,2],"key":"k3y-of-the-run","b":1.0}`, false, true},
		{"POST", server.URL, `{"a":[2,1],"key":"","b":1.0}`, false, false},
		{"GET", server.URL + "/s?api_key=other&v=1", "", false, true},
		{"GET", server.URL + "/s?api_key=other&v=2", "", false, false},
		{"GET", server.URL + "/t?k=", "", false, true},
		{"GET", server.URL + "/l?id=7&utm_source=x&_=5&t=1700000000000&gclid=1&cb=2", "", false, false},
		{"GET", server.URL + "/l?utm_source=x&id=7&_=5&t=1700000000", "", true, true},
		{"GET", server.URL + "/l?utm_source=x&id=8", "", true, false},
		{"GET", server.URL + "/l?id=7", "", true, true},
	} {
		played := open(t, dir, tape.ReplayOptions{Loose: tt.loose, Secrets: []string{"k3y-of-the-run"}})
		got := ask(t, played.Play("z").Transport("", "p"), tt.method, tt.url, tt.body)
		if hit := strings.HasPrefix(got, "200"); hit != tt.want {
			t.Errorf("%s %s %s (loose %v): %s", tt.method, tt.url, tt.body, tt.loose, got)
		}
		if loose := played.Stats().Loose == 1; loose != (tt.loose && tt.want && strings.Contains(tt.url, "utm")) {
			t.Errorf("%s: counted as loose: %v", tt.url, loose)
		}
	}
}

// TestNoSecrets looks for what must not be in any file of a recording.
func TestNoSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=verysecret")
		w.Header().Set("X-Auth-Token", "verysecret")
		w.Header().Set("Location", "/next?access_token=verysecret&page=2#x")
		w.WriteHeader(http.StatusFound)
		fmt.Fprintf(w, "your key %q is known", r.Header.Get("X-Api-Key"))
	}))
	defer server.Close()
	dir := t.TempDir()
	r := create(t, dir, tape.Options{Secrets: []string{"verysecret"}})
	address := strings.Replace(server.URL, "http://", "http://me:verysecret@", 1) + "/?k=verysecret&api_key=verysecret"
	ask(t, r.Play("a", 1).Transport("", "p", live(t)), "POST", address, `{"k":"verysecret"}`,
		"X-Api-Key", "verysecret", "Cookie", "verysecret", "Authorization", "Bearer verysecret")
	closed(t, r)
	for name, text := range files(t, dir) {
		if strings.HasSuffix(name, ".zst") {
			continue
		}
		if strings.Contains(text, "verysecret") || strings.Contains(strings.ToLower(text), "cookie") {
			t.Errorf("%s: %q", name, text)
		}
	}
	through := open(t, dir, tape.ReplayOptions{}).Play("a").Transport("", "p")
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/?k=&api_key=", strings.NewReader(`{"k":""}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the body", string(body), `your key "" is known`)
	equal(t, "where it leads", resp.Header.Get("Location"), "/next?access_token=&page=2#x")
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFailures records what goes wrong, and has it go wrong again.
func TestFailures(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-silent
		case "/breaks":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
		case "/503":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
		}
	}))
	defer server.Close()
	defer close(silent)
	dead := httptest.NewServer(nil)
	dead.Close()
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	blocked := source.Errorf(source.Agent, source.BlockedURL, "this address is refused")
	transports := map[string]http.RoundTripper{
		dead.URL + "/":         live(t),
		server.URL + "/breaks": live(t),
		server.URL + "/503":    live(t),
		server.URL + "/silent": &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond},
		"http://blocked.test/": transport(func(*http.Request) (*http.Response, error) { return nil, blocked }),
	}
	first := map[string]string{}
	for url, live := range transports {
		first[url] = ask(t, r.Play("a", 1).Transport("", "p", live), "GET", url, "")
	}
	closed(t, r)
	for url, begins := range map[string]string{
		dead.URL + "/":         "unavailable 1 GET " + dead.URL + "/: dial tcp",
		server.URL + "/breaks": "200 half unavailable 1 GET " + server.URL + "/breaks: unexpected EOF",
		server.URL + "/silent": "unavailable 1 GET " + server.URL + "/silent: net/http: timeout awaiting response headers",
		"http://blocked.test/": "blocked_url 0 this address is refused",
		server.URL + "/503":    "503 ",
	} {
		if !strings.HasPrefix(first[url], begins) {
			t.Errorf("recorded %s: %s", url, first[url])
		}
		equal(t, "replayed "+url, ask(t, open(t, dir, tape.ReplayOptions{}).Play("b").Transport("", "p"), "GET", url, ""), first[url])
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRedirects follows a redirect to an address in another charset, in a recording as on the web.
func TestRedirects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", "/caf\xe9?q=\xe9&b#top")
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%q", r.URL.RequestURI())
	}))
	defer server.Close()
	dir := t.TempDir()
	follow := func(through http.RoundTripper) string {
		client := http.Client{Transport: through}
		resp, err := client.Get(server.URL)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprint(string(text), " ", err, " ", resp.Request.URL.Fragment)
	}
	r := create(t, dir, tape.Options{})
	first := follow(r.Play("a", 1).Transport("", "p", live(t)))
	closed(t, r)
	if !strings.HasSuffix(first, "<nil> top") {
		t.Errorf("recorded %s", first)
	}
	equal(t, "replayed", follow(open(t, dir, tape.ReplayOptions{}).Play("b").Transport("", "p")), first)
}

// TestGivenUp holds that a request that its caller cancelled is not on the tape.
func TestGivenUp(t *testing.T) {
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	waiting := transport(func(req *http.Request) (*http.Response, error) {
		cancel()
		return nil, req.Context().Err()
	})
	req, err := http.NewRequestWithContext(ctx, "GET", "http://a.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Play("a", 1).Transport("", "p", waiting).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	closed(t, r)
	if exchanges, _ := open(t, dir, tape.ReplayOptions{}).Size(); exchanges != 0 {
		t.Errorf("%d exchanges", exchanges)
	}
}

// TestCut holds that a body of which the caller read a part ends in the same place.
func TestCut(t *testing.T) {
	const announced = 5 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/announced" {
			w.Header().Set("Content-Length", fmt.Sprint(announced))
		}
		io.WriteString(w, strings.Repeat("0123456789", announced/10))
	}))
	defer server.Close()
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	read := func(through http.RoundTripper, path string, most int64) (text string, length int64, err error) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := through.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		part, err := io.ReadAll(io.LimitReader(resp.Body, most))
		return string(part), resp.ContentLength, err
	}
	recorded := r.Play("a", 1).Transport("", "p", live(t))
	for path, most := range map[string]int64{"/announced": 1000, "/": 1000, "/whole": announced, "/announced?whole": announced} {
		if text, _, err := read(recorded, path, most); err != nil || len(text) != int(most) {
			t.Fatalf("%s: %d bytes, %v", path, len(text), err)
		}
	}
	closed(t, r)
	played := open(t, dir, tape.ReplayOptions{}).Play("a").Transport("", "p")
	for _, tt := range []struct {
		path   string
		most   int64
		bytes  int
		length int64
		err    error
	}{
		{"/announced", 1000, 1000, announced, nil},
		{"/announced", 1001, 1000, announced, io.ErrUnexpectedEOF},
		{"/", 1000, 1000, -1, nil},
		{"/", 1 << 30, 1000, -1, io.ErrUnexpectedEOF},
		{"/announced?whole", 1 << 30, announced, announced, nil},
	} {
		text, length, err := read(played, tt.path, tt.most)
		if len(text) != tt.bytes || length != tt.length || !errors.Is(err, tt.err) {
			t.Errorf("%s up to %d: %d bytes of %d, %v", tt.path, tt.most, len(text), length, err)
		}
	}
}

// TestWorkers plays many episodes that are not in the recording, on one worker and on many: each gets the same.
func TestWorkers(t *testing.T) {
	server, dir := counting(t), t.TempDir()
	r := create(t, dir, tape.Options{})
	for i := range 20 {
		through := r.Play(fmt.Sprint("recorded", i), 1).Transport("", "p", live(t))
		ask(t, through, "GET", server.URL+"/same", "")
		ask(t, through, "POST", server.URL+fmt.Sprint("/", i%3), "q")
	}
	closed(t, r)
	server.Close()
	const episodes = 500
	play := func(workers int) [episodes]string {
		played := open(t, dir, tape.ReplayOptions{})
		var said [episodes]string
		var all errgroup.Group
		all.SetLimit(workers)
		for i := range episodes {
			all.Go(func() error {
				through := played.Play(fmt.Sprint("new", i)).Transport("", "p")
				for n := range i%4 + 1 {
					said[i] += ask(t, through, "GET", server.URL+"/same", "") + ask(t, through, "POST", server.URL+fmt.Sprint("/", n), "q")
				}
				return nil
			})
		}
		all.Wait()
		return said
	}
	one, many := play(1), play(32)
	if one != many {
		t.Error("the number of workers decides what episodes get")
	}
	if !strings.Contains(one[3], "/2 q") || !strings.Contains(one[3], "replay_miss") {
		t.Errorf("episode 3 got %s", one[3])
	}
}

// TestBounds holds that what is too long ends an exchange, and not the recording.
func TestBounds(t *testing.T) {
	const most = 64 << 20
	dir := t.TempDir()
	r := create(t, dir, tape.Options{})
	endless := transport(func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Etag": {strings.Repeat("x", len(req.URL.Fragment))}}
		body := io.LimitReader(zeros{}, most+10)
		return &http.Response{StatusCode: 200, Header: header, ContentLength: -1, Body: io.NopCloser(body), Request: req}, nil
	})
	recorded := r.Play("a", 1).Transport("", "p", endless)
	if got := ask(t, recorded, "GET", "http://a.test/", ""); len(got) != len("200 ")+most+10 {
		t.Errorf("recorded %d bytes", len(got))
	}
	long := strings.Repeat("x", 100<<10)
	heads := "too_large 1 GET http://a.test/heads: headers of more than 64 KB"
	equal(t, "headers", ask(t, recorded, "GET", "http://a.test/heads#"+long, ""), heads)
	equal(t, "an address", ask(t, recorded, "GET", "http://a.test/"+long, ""), "too_large 0 the address has more than 32 KB")
	equal(t, "a request", ask(t, recorded, "POST", "http://a.test/", strings.Repeat("x", 16<<20+1)),
		"too_large 0 the request has more than 16 MB")
	closed(t, r)
	played := open(t, dir, tape.ReplayOptions{}).Play("a").Transport("", "p")
	if got := ask(t, played, "GET", "http://a.test/", ""); len(got) != len("200 ")+most+len(" unexpected EOF") {
		t.Errorf("replayed %d bytes: %.50q", len(got), got)
	}
	equal(t, "headers again", ask(t, played, "GET", "http://a.test/heads", ""), heads)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestManyAtOnce records from many goroutines, and replays from as many others.
func TestManyAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // four bodies in all
		io.WriteString(w, strings.Repeat(r.URL.Query().Get("page"), 1000))
	}))
	defer server.Close()
	const episodes, pages = 16, 12
	dir := t.TempDir()
	each := func(do func(episode string)) {
		var all sync.WaitGroup
		for i := range episodes {
			all.Go(func() { do(fmt.Sprint("e", i)) })
		}
		all.Wait()
	}
	talk := func(through http.RoundTripper) {
		for page := range pages {
			want := "200 " + strings.Repeat(fmt.Sprint(page%4), 1000)
			if got := ask(t, through, "GET", fmt.Sprintf("%s/%d?page=%d", server.URL, page, page%4), ""); got != want {
				t.Errorf("page %d: %.40s", page, got)
			}
		}
	}
	r := create(t, dir, tape.Options{})
	shared := live(t)
	each(func(episode string) { talk(r.Play(episode, 1).Transport("web_extract", "fetch/1", shared)) })
	closed(t, r)
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	if err != nil || len(blobs) != 4 {
		t.Errorf("%d bodies are kept, want 4 (%v)", len(blobs), err)
	}
	server.Close()
	played := open(t, dir, tape.ReplayOptions{})
	each(func(episode string) { talk(played.Play(episode).Transport("", "fetch/1")) })
	if stats := played.Stats(); stats.Hits != episodes*pages || len(stats.Misses) != 0 {
		t.Errorf("stats %+v", stats)
	}
}
