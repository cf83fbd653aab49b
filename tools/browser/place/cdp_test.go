package place_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
	"trajgen/tools/web/source"
)

// TestEndpoint opens browsers by all kinds of addresses.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	browser := placetest.StartChromium(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(browser.URL, "http://"), ":")
	tests := []struct {
		name, url, keyEnv string
		want              string // of the socket
		alone             bool
	}{
		{"server", browser.URL, "", browser.Socket, true},
		{"server with a path", browser.URL + "/", "", browser.Socket, true},
		{"server by name", "http://localhost:" + port, "", strings.Replace(browser.Socket, "127.0.0.1", "localhost", 1), true},
		{"socket", browser.Socket, "", browser.Socket, true},
		{"socket of a service", "wss://b.test/chrome?token={key}", "K", "wss://b.test/chrome?token=" + placetest.Key, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := open(t, "cdp", tt.url, t.TempDir(), func(s *place.Settings) { s.KeyEnv = tt.keyEnv })
			r, err := p.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Socket != tt.want || r.Shared != tt.alone || p.Alone() != tt.alone {
				t.Errorf("%s, shared %v, alone %v; want %s, %v", r.Socket, r.Shared, p.Alone(), tt.want, tt.alone)
			}
			if err := errors.Join(r.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWrongEndpoint has a server that is none of a browser's.
func TestWrongEndpoint(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, says string
		status     int
		class      string
	}{
		{"no address", `{"Browser":"Chrome"}`, 200, source.Malformed},
		{"file", `{"webSocketDebuggerUrl":"file:///etc/passwd"}`, 200, source.Malformed},
		{"page", `<html>`, 200, source.Malformed},
		{"other server", `no`, 404, "http_404"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.says)
			}))
			defer server.Close()
			_, err := open(t, "cdp", server.URL, t.TempDir(), nil).Open(t.Context())
			if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != tt.class {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBadAddress has a service that makes sessions and then tells no address that leads to them.
func TestBadAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"file:///etc/passwd", "hello", "http://127.0.0.1:1/x"} {
		server := placetest.Start(t, "firecrawl")
		server.Make(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
			if r.Method != http.MethodPost {
				return false
			}
			serve(httptest.NewRecorder(), r)
			fmt.Fprintf(w, `{"success":true,"id":%q,"cdpUrl":%q}`, server.Running()[0], address)
			return true
		})
		p := open(t, "firecrawl", server.URL, t.TempDir(), nil)
		if _, err := p.Open(t.Context()); err == nil {
			t.Errorf("%s: no error", address)
		}
		if server.Made() != 1 || server.Ended() != 1 {
			t.Errorf("%s: %d made, %d ended", address, server.Made(), server.Ended())
		}
	}
}

// TestHostileID has a service whose ids would be paths.
func TestHostileID(t *testing.T) {
	t.Parallel()
	server := placetest.Start(t, "firecrawl")
	server.Make(func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) bool {
		fmt.Fprint(w, `{"success":true,"id":"../../../etc/x","cdpUrl":"ws://127.0.0.1:1/"}`)
		return true
	})
	p := open(t, "firecrawl", server.URL, t.TempDir(), nil)
	if _, err := p.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "is not of 1 to 128 letters") {
		t.Errorf("got %v", err)
	}
	if got := server.Got(); len(got) != 2 || got[1].Path != "/v2/browser/..%2F..%2F..%2Fetc%2Fx" {
		t.Errorf("asked %v", got)
	}
}

// TestPipe sends messages in pieces and reads long ones.
func TestPipe(t *testing.T) {
	t.Parallel()
	browser := placetest.StartChromium(t)
	r, err := open(t, "cdp", browser.Socket, t.TempDir(), nil).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	long := strings.Repeat("x", 1<<20)
	for _, part := range []string{`{"id":1,"method":"Target.se`, `tDiscoverTargets","params":{"discover":false}}` + "\x00" + `{"id":2,"method":"No.thing","params":`,
		`{"text":"` + long + `"}}` + "\x00"} {
		if n, err := conn.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatalf("%d written: %v", n, err)
		}
	}
	in := bufio.NewReader(conn)
	for _, want := range []string{`{"id":1,"result":{}}`, `"id":2,"error":{`} {
		if got, err := in.ReadString(0); err != nil || !strings.Contains(got, want) || !strings.HasSuffix(got, "}\x00") {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := conn.Write([]byte("no JSON\x00")); err == nil {
		t.Error("no error")
	}
}

// TestUnreachable has a session whose web socket refuses us. What the address has in it is not shown.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, url := range []string{"ws://127.0.0.1:1/devtools/browser/s3cret", "ws" + strings.TrimPrefix(server.URL, "http") + "/?token=s3cret"} {
		r, err := open(t, "cdp", url, t.TempDir(), nil).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Connect(t.Context())
		if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.Unavailable || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
