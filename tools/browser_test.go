package tools_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools"
	"trajgen/tools/browser"
	"trajgen/tools/web"
)

// openBrowser is one episode with a browser and two sites.
func openBrowser(t testing.TB, toolsets []string, services ...any) *episodeOf {
	t.Helper()
	b, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, "native", err)
	t.Cleanup(func() { b.Close() })
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select(toolsets, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := b.Open(t.Context(), sandbox.Spec{ID: "browser"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	w, err := web.Open(t.Context(), web.Config{Getenv: func(string) string { return "" }, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	session := set.Session(registry.SessionConfig{
		Sandbox:  func(context.Context) (sandbox.Sandbox, error) { return box, nil },
		Services: append(services, w.View("episode", 1, "shop", "forms")),
	})
	t.Cleanup(session.Close)
	return &episodeOf{t: t, session: session, box: box}
}

// sourceOf is what the row of a call says of its page.
func sourceOf(t testing.TB, call episode.ToolCall) map[string]any {
	t.Helper()
	return decode(t, string(call.Source))
}

func TestBrowser(t *testing.T) {
	e := openBrowser(t, []string{"browser", "browser-more"})
	page := e.ok("browser_navigate", args{"url": "http://shop.test/"})
	if page["status"] != 200.0 || page["url"] != "http://shop.test/" || !strings.Contains(page["snapshot"].(string), "[ref=e1]") {
		t.Fatalf("browser_navigate: %v", page)
	}
	if got := e.ok("browser_console", args{"expression": "await Promise.resolve(1 + 1)"}); got["value"] != 2.0 {
		t.Errorf("browser_console: %v", got)
	}
	e.fails("exception", "browser_console", args{"expression": "nothing.at.all"})
	e.ok("browser_console", args{"expression": "console.log('hello')"})
	if got := e.ok("browser_console", args{"clear": true}); !strings.Contains(got["messages"].([]any)[0].(map[string]any)["text"].(string), "hello") {
		t.Errorf("browser_console: %v", got)
	}
	if got := e.ok("browser_console", args{}); got["count"] != 0.0 {
		t.Errorf("browser_console after clear: %v", got)
	}
	if got := e.ok("browser_cdp", args{"method": "Browser.getVersion"}); !strings.Contains(got["result"].(map[string]any)["product"].(string), "Chrome") {
		t.Errorf("browser_cdp: %v", got)
	}
	for _, method := range []string{"Browser.close", "Fetch.disable", "Target.createTarget", "Page.crash", "DOM.setFileInputFiles", "nonsense"} {
		e.fails("denied", "browser_cdp", args{"method": method})
	}
	e.fails("blocked_url", "browser_cdp", args{"method": "Page.navigate", "params": args{"url": "chrome://crash"}})
	e.fails("protocol_error", "browser_cdp", args{"method": "DOM.nothing"})
	e.fails("no_dialog", "browser_dialog", args{"action": "accept"})
	if got := e.ok("browser_console", args{"expression": "confirm('Sure?')"}); got["pending_dialogs"] == nil {
		t.Errorf("a dialog: %v", got)
	}
	if got := e.ok("browser_navigate", args{"url": "http://forms.test/"}); got["pending_dialogs"] == nil || got["snapshot"] != nil {
		t.Errorf("while a dialog is open: %v", got)
	}
	e.ok("browser_dialog", args{"action": "dismiss"})
	e.fails("no_history", "browser_back", args{})
	e.fails("blocked_url", "browser_navigate", args{"url": "file:///etc/passwd"})
	e.fails("blocked_url", "browser_navigate", args{"url": "http://169.254.169.254/"})
	tabs := e.ok("browser_tabs", args{})["tabs"].([]any)
	if len(tabs) != 1 || tabs[0].(map[string]any)["id"] != "t1" {
		t.Errorf("browser_tabs: %v", tabs)
	}
	e.fails("no_tab", "browser_tabs", args{"action": "switch", "tab": "t7"})
	if got := e.ok("browser_wait", args{"text": "no such text", "ms": 100}); got["found"] != false {
		t.Errorf("browser_wait: %v", got)
	}
	e.fails("not_found", "browser_upload", args{"ref": "e1", "paths": []string{"nothing.txt"}})
	call := e.call("browser_navigate", args{"url": "http://shop.test/"})
	got := sourceOf(t, call)
	if got["mode"] != "live" || got["url"] != "http://shop.test/" || got["requests"].(float64) < 1 || got["bytes"].(float64) < 1000 {
		t.Errorf("the call's row: %v", got)
	}
	shown := decode(t, call.Result)["snapshot"].(string)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(shown))); got["snapshot_sha256"] != want {
		t.Errorf("the digest of the snapshot is %v, want %s", got["snapshot_sha256"], want)
	}
}

// Without Chromium the episode ends, and not by the agent's doing.
func TestBrowserMissing(t *testing.T) {
	e := openBrowser(t, []string{"browser"}, browser.Shared{Settings: browser.Settings{Program: "/nothing/chrome"}})
	got := e.fails("unavailable", "browser_navigate", args{"url": "http://shop.test/"})
	wantContains(t, got["error"], "apt-get install chromium-headless-shell")
	if fault := e.session.Fault(); fault == nil || fault.Outcome != episode.ToolError {
		t.Errorf("the episode's fault is %v", fault)
	}
}
