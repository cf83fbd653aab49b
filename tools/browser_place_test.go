package tools_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/browser"
	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
	"trajgen/tools/web"
)

// TestBrowserElsewhere has the browser's tools act on a page at two places: one of the Chrome DevTools Protocol, and one with requests of
// its own. Neither needs a sandbox.
func TestBrowserElsewhere(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>At %s</title><h1>A shop</h1><a href="/two">Two</a><input aria-label="Name"><input type="password" aria-label="Key">
<button onclick="document.title = 'Hello ' + document.querySelector('input').value">Greet</button><img src="/i.png" alt="Pic"><p style="height:3000px">`, r.URL.Path)
	}))
	t.Cleanup(site.Close)
	for _, name := range []string{"cdp", "camofox"} {
		t.Run(name, func(t *testing.T) {
			server := placetest.Start(t, name)
			p, err := place.Open(place.Config{
				Settings: place.Settings{Place: name, URL: server.URL}, Getenv: func(string) string { return placetest.Key },
				Transport: http.DefaultTransport, Now: time.Now, StateDir: t.TempDir(),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			reg, err := registry.New(tools.Builtin()...)
			if err != nil {
				t.Fatal(err)
			}
			toolset, err := reg.Select([]string{"browser"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			view := openWeb(t, web.Settings{AllowPrivate: []string{"127.0.0.1"}}).View("episode", 1)
			session := toolset.Session(registry.SessionConfig{Services: []any{view, browser.Shared{Place: p}}})
			n := 0
			call := func(tool, arguments string) map[string]any {
				t.Helper()
				n++
				got := session.Call(t.Context(), registry.Request{ID: fmt.Sprint("c", n), Name: tool, Arguments: arguments})
				var about struct{ Provider, Mode string }
				if err := json.Unmarshal(got.Source, &about); err != nil || about.Provider != name || about.Mode != "live" {
					t.Errorf("%s: source %s", tool, got.Source)
				}
				var result map[string]any
				if err := json.Unmarshal([]byte(got.Result), &result); err != nil {
					t.Fatalf("%s: %s", tool, got.Result)
				}
				return result
			}
			if r := call("browser_navigate", fmt.Sprintf(`{"url":%q}`, site.URL)); r["title"] != "At /" || !strings.Contains(fmt.Sprint(r["snapshot"]), `link "Two" [ref=e1]`) {
				t.Errorf("opened: %v", r)
			}
			if r := call("browser_navigate", fmt.Sprintf(`{"url":%q}`, site.URL+"/two")); r["url"] != site.URL+"/two" {
				t.Errorf("opened: %v", r)
			}
			if r := call("browser_back", `{}`); r["title"] != "At /" {
				t.Errorf("back: %v", r)
			}
			if r := call("browser_snapshot", `{}`); !strings.Contains(fmt.Sprint(r["snapshot"]), `textbox "Name" [ref=`) {
				t.Errorf("shown: %v", r)
			}
			if r := call("browser_type", `{"ref":"textbox \"Name\"","text":"Ada"}`); r["typed"] != "Ada" || r["element"] != `textbox "Name"` {
				t.Errorf("typed: %v", r)
			}
			if r := call("browser_type", `{"ref":"textbox \"Key\"","text":"s3cret"}`); r["typed"] != "6 characters" {
				t.Errorf("typed: %v", r)
			}
			if r := call("browser_click", `{"ref":"button \"Greet\""}`); r["clicked"] != `button "Greet"` {
				t.Errorf("clicked: %v", r)
			}
			if r := call("browser_console", `{"expression":"document.title"}`); r["value"] != "Hello Ada" {
				t.Errorf("title: %v", r)
			}
			if r := call("browser_scroll", `{"direction":"down"}`); r["moved"] != 500.0 {
				t.Errorf("scrolled: %v", r)
			}
			if r := call("browser_press", `{"key":"End"}`); r["success"] != true {
				t.Errorf("pressed: %v", r)
			}
			if r := call("browser_get_images", `{}`); r["count"] != 1.0 {
				t.Errorf("images: %v", r)
			}
			if r := call("browser_click", `{"ref":"e99"}`); r["success"] != false {
				t.Errorf("clicked nothing: %v", r)
			}
			if r := call("browser_console", `{"expression":"1 + 1"}`); r["value"] != 2.0 {
				t.Errorf("evaluated: %v", r)
			}
			if r := call("browser_navigate", `{"url":"http://169.254.169.254/latest/meta-data/"}`); r["success"] != false {
				t.Errorf("opened what it must not: %v", r)
			}
			session.Close()
			if name == "camofox" && (server.Made() != 1 || server.Ended() != 1) {
				t.Errorf("%d made, %d ended", server.Made(), server.Ended())
			}
		})
	}
}
