package place_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
	"trajgen/tools/web/source"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}

// open opens a place at a fake.
func open(t testing.TB, name, url, stateDir string, change func(*place.Settings)) *place.Place {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s := place.Settings{Place: name, URL: url}
	if change != nil {
		change(&s)
	}
	getenv := func(string) string { return placetest.Key }
	p, err := place.Open(place.Config{Settings: s, Getenv: getenv, Transport: transport, Now: time.Now, StateDir: stateDir})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// created is what makes a session, and what ends it, as documented. NAME is the name that we gave it.
var created = map[string]struct{ create, end string }{
	"browserbase": {`{"browserSettings":{"viewport":{"height":720,"width":1280}},"timeout":900,"userMetadata":{"trajgen":"NAME"}}`,
		`{"status":"REQUEST_RELEASE"}`},
	"browser-use": {`{"browserScreenHeight":720,"browserScreenWidth":1280,"timeout":15}`, `{"action":"stop"}`},
	"steel":       {`{"dimensions":{"height":720,"width":1280},"sessionId":"NAME","timeout":900000}`, `{}`},
	"firecrawl":   {`{"activityTtl":900,"ttl":900}`, ``},
	"camofox":     {`{"sessionKey":"episode","userId":"NAME"}`, ``},
}

const site = `<!doctype html><title>A shop</title><h1>A shop</h1><a href="/two">Two</a><input aria-label="Name"><img src="/i.png" alt="Pic">
<button onclick="document.title = 'Hello ' + document.querySelector('input').value">Greet</button><p style="height:3000px">`

func serveSite(t testing.TB) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/two" {
			fmt.Fprint(w, "<!doctype html><title>Two</title><h1>The second</h1>")
			return
		}
		fmt.Fprint(w, site)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestPages drives a page at each place, through the protocol that its maker documents.
func TestPages(t *testing.T) {
	t.Parallel()
	page := serveSite(t)
	for _, name := range place.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, stateDir := placetest.Start(t, name), t.TempDir()
			p := open(t, name, server.URL, stateDir, nil)
			r, err := p.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Provider != name {
				t.Errorf("provider %s", r.Provider)
			}
			if r.Tab != nil {
				if at, err := r.Tab.Navigate(t.Context(), page); err != nil || at != page+"/" {
					t.Errorf("at %s: %v", at, err)
				}
			} else if title := titleOf(t, r, page); title != "A shop" {
				t.Errorf("title %q", title)
			}
			if want, rented := created[name]; rented {
				if names := listed(t, stateDir); len(names) != 1 || names[0] != r.ID || !slices.Equal(server.Running(), names) {
					t.Errorf("listed %v, running %v, want %s", names, server.Running(), r.ID)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				got := server.Got()
				first, last := got[0], got[len(got)-1]
				if body := normal(t, first.Body); body != normal(t, strings.ReplaceAll(want.create, "NAME", nameIn(first.Body))) {
					t.Errorf("made by %s", body)
				}
				if last.Body != want.end {
					t.Errorf("ended by %s", last.Body)
				}
				if server.Made() != 1 || server.Ended() != 1 || len(listed(t, stateDir)) != 0 {
					t.Errorf("%d made, %d ended, %v listed", server.Made(), server.Ended(), listed(t, stateDir))
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(stateDir, "*-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// titleOf opens a page, by chromedp's own transport, and asks for the version by pipes.
func titleOf(t *testing.T, r *place.Remote, page string) string {
	t.Helper()
	ctx, cancel := remote.NewAllocator(t.Context(), r.Socket, remote.NoModifyURL)
	defer cancel()
	conn, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := chromedp.NewBrowserTransport(ctx, chromedp.NewPipeConn(conn, conn))
	if err != nil {
		t.Fatal(err)
	}
	var version struct {
		Product string `json:"product"`
	}
	if err := own.Call(ctx, "Browser.getVersion", struct{}{}, &version); err != nil || !strings.Contains(version.Product, "Chrome") {
		t.Errorf("version %v, %v", version, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	title, err := chromedp.Run(ctx, chromedp.Title())
	if err != nil {
		t.Fatal(err)
	}
	return title
}

// listed are the names on the lists below a state directory.
func listed(t *testing.T, stateDir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(stateDir, "browser-*", "*.sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".sandbox.json"))
	}
	return names
}

func normal(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	written, _ := json.Marshal(value)
	return string(written)
}

// nameIn is our name for a session in the request that makes it.
func nameIn(body string) string {
	var said struct {
		SessionID, UserID string
		UserMetadata      struct{ Trajgen string }
	}
	_ = json.Unmarshal([]byte(body), &said)
	return said.SessionID + said.UserID + said.UserMetadata.Trajgen
}

// rented are the places that rent.
func rented(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range place.Names() {
		if _, ok := created[name]; ok {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, name) })
		}
	}
}

// named are the places that can find a session by our name for it.
func named(name string) bool { return name == "steel" || name == "browserbase" || name == "camofox" }

// TestTrouble has services answer otherwise than they should.
func TestTrouble(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	tests := []struct {
		name   string
		say    func(http.ResponseWriter)
		class  string
		blame  source.Blame
		create int // requests to make a session
	}{
		{"key", status(401, `{"error":"Unauthorized"}`), source.Refused, source.Operator, 1},
		{"forbidden", status(403, `{"error":"Forbidden"}`), source.Refused, source.Operator, 1},
		{"quota", status(402, `{"message":"minutes are used up"}`), source.Refused, source.Operator, 1},
		{"wish", status(422, `{"detail":"timeout is too long"}`), "http_422", source.Operator, 1},
		{"other server", status(404, `not found`), "http_404", source.Operator, 1},
		{"busy for ever", status(429, `{"message":"too many sessions at once"}`), source.Unavailable, source.Outage, 4},
		{"failed", status(500, `{"message":"oops"}`), source.Unavailable, source.Outage, 1},
		{"page", status(200, `<html>hello`), source.Malformed, source.Outage, 1},
		{"half", status(200, `{"id":"x`), source.Malformed, source.Outage, 1},
		{"empty", status(200, `{}`), source.Malformed, source.Outage, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rented(t, func(t *testing.T, name string) {
				server, stateDir := placetest.Start(t, name), t.TempDir()
				var creates atomic.Int32
				server.Make(func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) bool {
					if r.Method != http.MethodPost || strings.Contains(r.URL.Path, "release") {
						return false
					}
					creates.Add(1)
					tt.say(w)
					return true
				})
				p := open(t, name, server.URL, stateDir, nil)
				_, err := p.Open(t.Context())
				failed, ok := errors.AsType[*source.Error](err)
				if name == "camofox" && tt.name == "other server" && ok { // which it calls a tab
					failed.Class, failed.Blame = tt.class, tt.blame
				}
				if !ok || failed.Class != tt.class || failed.Blame != tt.blame {
					t.Errorf("got %#v, %v", failed, err)
				}
				if strings.Contains(fmt.Sprint(err), placetest.Key) {
					t.Errorf("shows the key: %v", err)
				}
				if n := int(creates.Load()); n != tt.create {
					t.Errorf("asked %d times for a session", n)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if names := listed(t, stateDir); len(names) != 0 {
					t.Errorf("listed: %v", names)
				}
			})
		})
	}
}

// TestWrongKey has a key that is refused for whatever is asked: nothing is left to end.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	rented(t, func(t *testing.T, name string) {
		server, stateDir := placetest.Start(t, name), t.TempDir()
		server.Make(func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
		p := open(t, name, server.URL, stateDir, nil)
		if _, err := p.Open(t.Context()); err == nil {
			t.Error("no error")
		}
		if err := p.Close(); err != nil || len(server.Got()) != 1 {
			t.Errorf("%d requests: %v", len(server.Got()), err)
		}
	})
}

// TestManyAtOnce says where several episodes can have a browser at once.
func TestManyAtOnce(t *testing.T) {
	rented(t, func(t *testing.T, name string) {
		p := open(t, name, "http://127.0.0.1:1", t.TempDir(), nil)
		if err := p.Close(); err != nil || p.Alone() {
			t.Errorf("alone %v, %v", p.Alone(), err)
		}
	})
}

// TestPasses has a service refuse for the moment.
func TestPasses(t *testing.T) {
	t.Parallel()
	rented(t, func(t *testing.T, name string) {
		server := placetest.Start(t, name)
		var n atomic.Int32
		server.Make(func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
			if n.Add(1) > 1 {
				return false
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		p := open(t, name, server.URL, t.TempDir(), nil)
		r, err := p.Open(t.Context())
		if err != nil || server.Made() != 1 {
			t.Fatalf("%d made: %v", server.Made(), err)
		}
		if err := errors.Join(r.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreached has no service at the address: what did not arrive is tried again.
func TestUnreached(t *testing.T) {
	t.Parallel()
	p, began := open(t, "firecrawl", "http://127.0.0.1:1", t.TempDir(), nil), time.Now()
	_, err := p.Open(t.Context())
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.Unavailable || failed.Blame != source.Outage {
		t.Errorf("got %v", err)
	}
	if time.Since(began) < 600*time.Millisecond {
		t.Error("it was not tried again")
	}
}

// TestLost loses the answer about a session that was made. It is ended where it can be found; elsewhere its time ends it.
func TestLost(t *testing.T) {
	t.Parallel()
	rented(t, func(t *testing.T, name string) {
		server, stateDir := placetest.Start(t, name), t.TempDir()
		var n atomic.Int32
		server.Make(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
			if n.Add(1) > 1 {
				return false
			}
			serve(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
		p := open(t, name, server.URL, stateDir, nil)
		if _, err := p.Open(t.Context()); err == nil {
			t.Error("no error")
		}
		want := 1
		if named(name) {
			want = 0
		}
		if len(server.Running()) != want || server.Made() != 1 {
			t.Errorf("%d made, %v running", server.Made(), server.Running())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCancelled cancels the call that waits for a session.
func TestCancelled(t *testing.T) {
	t.Parallel()
	server := placetest.Start(t, "steel")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the episode is over")
	server.Make(func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) bool {
		if r.URL.Path == "/v1/sessions" {
			serve(httptest.NewRecorder(), r)
			cancel(why)
			<-r.Context().Done()
			return true
		}
		return false
	})
	p := open(t, "steel", server.URL, t.TempDir(), nil)
	if _, err := p.Open(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if server.Made() != 1 || server.Ended() != 1 {
		t.Errorf("%d made, %d ended", server.Made(), server.Ended())
	}
}

// TestUnreleased has a service fail to end sessions at first.
func TestUnreleased(t *testing.T) {
	t.Parallel()
	rented(t, func(t *testing.T, name string) {
		server, stateDir := placetest.Start(t, name), t.TempDir()
		var fails atomic.Bool
		server.Make(func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) bool {
			if fails.Load() {
				w.WriteHeader(http.StatusForbidden)
			}
			return fails.Load()
		})
		p := open(t, name, server.URL, stateDir, nil)
		r, err := p.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fails.Store(true)
		if r.Close() == nil || p.Close() == nil {
			t.Error("no error")
		}
		if diff := cmp.Diff([]string{r.ID}, listed(t, stateDir)); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		fails.Store(false)
		if err := p.Close(); err != nil || len(server.Running()) != 0 || len(listed(t, stateDir)) != 0 {
			t.Errorf("%v running: %v", server.Running(), err)
		}
	})
}
