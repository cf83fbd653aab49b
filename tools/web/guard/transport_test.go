package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"trajgen/tools/web/guard"
	"trajgen/tools/web/source"
)

// An environment that names a proxy does not lead past the guard: all tests have one.
func TestMain(m *testing.M) {
	if err := os.Setenv("HTTP_PROXY", "http://127.0.0.1:1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// site is a server on 127.0.0.1 that counts its requests.
func site(t *testing.T, handler http.HandlerFunc) (port string, hits *atomic.Int32) {
	t.Helper()
	hits = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	u, _ := url.Parse(server.URL)
	return u.Port(), hits
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// answers are what a name server says, one after the other; the last one again and again.
func answers(asked *atomic.Int32, all ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		n := int(asked.Add(1))
		var addrs []netip.Addr
		for text := range strings.FieldsSeq(all[min(n, len(all))-1]) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}
}

func get(t *testing.T, g *guard.Guard, target string) (string, error) {
	t.Helper()
	transport := g.Transport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestTransport(t *testing.T) {
	port, hits := site(t, hello)
	var asked atomic.Int32
	g := open(t, guard.Config{Private: []string{"127.0.0.1"}, Lookup: answers(&asked, "127.0.0.1")})
	for _, host := range []string{"example.org", "127.0.0.1", "bücher.example"} {
		if got, err := get(t, g, "http://"+host+":"+port+"/"); got != "hello" || err != nil {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
	if asked.Load() != 2 || hits.Load() != 3 {
		t.Errorf("%d questions, want 2, and %d requests, want 3", asked.Load(), hits.Load())
	}
}

func TestTransportRefuses(t *testing.T) {
	port, hits := site(t, hello)
	var asked atomic.Int32
	for _, tt := range []struct{ host, answer string }{
		{"127.0.0.1", ""}, {"[::ffff:127.0.0.1]", ""}, {"[64:ff9b::7f00:1]", ""}, {"localhost", ""}, {"x.localhost", ""},
		{"2130706433", ""}, {"①②⑦.0.0.1", ""}, {"metadata.google.internal", ""}, {"a.example", "127.0.0.1"},
		{"a.example", "::1"}, {"a.example", "10.0.0.1"}, {"a.example", "169.254.169.254"}, {"a.example", "64:ff9b::7f00:1"},
		{"a.example", "100.100.100.200"}, {"a.example", "0.0.0.0"}, {"a.example", "::ffff:127.0.0.1"}, {"a.example", "fe80::1%lo"},
		// One bad address of an answer refuses all of it.
		{"a.example", "8.8.8.8 127.0.0.1"}, {"a.example", "8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 9.9.9.9 10.0.0.1"},
	} {
		config := guard.Config{}
		if tt.answer != "" {
			config.Lookup = answers(&asked, tt.answer)
		}
		if _, err := get(t, open(t, config), "http://"+tt.host+":"+port+"/"); classOf(err) != source.BlockedURL {
			t.Errorf("%s that leads to %q: %v, want %s", tt.host, tt.answer, err, source.BlockedURL)
		}
	}
	// A name that may be private is not one that may be a metadata service.
	g := open(t, guard.Config{Private: []string{"*.example"}, Lookup: answers(&asked, "169.254.169.254")})
	if _, err := get(t, g, "http://a.example:"+port+"/"); classOf(err) != source.BlockedURL {
		t.Errorf("metadata by a private name: %v", err)
	}
	g = open(t, guard.Config{Private: []string{"127.0.0.1"}})
	for _, target := range []string{"http://user@127.0.0.1:" + port + "/", "http://127.0.0.1:22/"} {
		if _, err := get(t, g, target); classOf(err) != source.BlockedURL {
			t.Errorf("%s: %v, want %s", target, err, source.BlockedURL)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached the server", hits.Load())
	}
}

// A name whose answer changes is judged by the answer that is dialled.
func TestRebinding(t *testing.T) {
	port, hits := site(t, hello)
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	outside := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "outside")
	})}
	go func() { _ = outside.Serve(listener) }()
	defer outside.Close()
	var asked atomic.Int32
	g := open(t, guard.Config{Private: []string{"127.0.0.2"}, Lookup: answers(&asked, "127.0.0.2", "127.0.0.1")})
	if got, err := get(t, g, "http://a.example:"+port+"/"); got != "outside" || err != nil || asked.Load() != 1 {
		t.Errorf("first answer: %q, %v, %d questions", got, err, asked.Load())
	}
	_, err = get(t, g, "http://a.example:"+port+"/")
	if classOf(err) != source.BlockedURL || asked.Load() != 2 || hits.Load() != 0 {
		t.Errorf("second answer: %v, %d questions, %d requests", err, asked.Load(), hits.Load())
	}
}

func TestTransportNames(t *testing.T) {
	config := guard.Config{Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		switch name {
		case "gone.example":
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		case "empty.example":
			return nil, nil
		}
		return nil, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	}}
	for host, want := range map[string]string{
		"gone.example": source.NoHost, "empty.example": source.NoHost,
		"slow.example": "look up slow.example: lookup slow.example: server misbehaving",
	} {
		if _, err := get(t, open(t, config), "http://"+host+"/"); classOf(err) != want {
			t.Errorf("%s: %v, want %s", host, err, want)
		}
	}
}

// A second address is tried when the first one does not answer.
func TestTransportTriesAddresses(t *testing.T) {
	port, _ := site(t, hello)
	var asked atomic.Int32
	g := open(t, guard.Config{Private: []string{"127.0.0.0/8"}, Lookup: answers(&asked, "127.0.0.9 127.0.0.1")})
	if got, err := get(t, g, "http://a.example:"+port+"/"); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTransportLimits(t *testing.T) {
	port, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 10<<10))
			}
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "not decoded")
	})
	g := open(t, guard.Config{Private: []string{"127.0.0.1"}})
	if _, err := get(t, g, "http://127.0.0.1:"+port+"/headers"); err == nil || !strings.Contains(err.Error(), "headers exceeded") {
		t.Errorf("10 MB of headers: %v", err)
	}
	if got, err := get(t, g, "http://127.0.0.1:"+port+"/"); got != "not decoded" || err != nil {
		t.Errorf("body = %q, %v", got, err)
	}
}

func TestOffline(t *testing.T) {
	port, hits := site(t, hello)
	client := http.Client{Transport: guard.Offline(source.Outage, source.ReplayMiss)}
	_, err := client.Post("http://127.0.0.1:"+port+"/", "text/plain", strings.NewReader("x"))
	e, ok := errors.AsType[*source.Error](err)
	if !ok || e.Class != source.ReplayMiss || e.Blame != source.Outage || hits.Load() != 0 {
		t.Errorf("%v, %d requests", err, hits.Load())
	}
}

func Example() {
	g, err := guard.New(guard.Config{Blocked: []string{"ads.example"}})
	if err != nil {
		panic(err)
	}
	for _, raw := range []string{"https://Example.org", "http://0x7f000001/", "http://localhost./", "https://www.ads.example/"} {
		u, err := g.Check(raw)
		if refused, ok := errors.AsType[*source.Error](err); ok {
			fmt.Println(refused.Class, "-", refused)
			continue
		}
		fmt.Println(u)
	}
	// Output:
	// https://example.org/
	// blocked_url - "http://0x7f000001/" is refused: its host is a number: write an IPv4 address as four decimal numbers
	// blocked_url - "localhost" is refused: it is a name of this machine or of its own network
	// blocked_policy - "https://www.ads.example/" is refused: this run blocks the site www.ads.example
}
