package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"trajgen/sandbox"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/browser"
	"trajgen/tools/web"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// box is a sandbox of its own.
func box(t testing.TB, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	b, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, "native", err)
	t.Cleanup(func() { b.Close() })
	spec.ID = "browser"
	sb, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

// openWeb is a web with settings.
func openWeb(t testing.TB, s web.Settings) *web.Web {
	t.Helper()
	w, err := web.Open(t.Context(), web.Config{Settings: s, Getenv: func(string) string { return "" }, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

var webSettings = web.Settings{}

// sites are handlers by host.
type sites map[string]http.HandlerFunc

func (s sites) site(host string) http.RoundTripper {
	if h := s[host]; h != nil {
		return handler(h)
	}
	return nil
}

// handler answers requests by itself.
type handler http.HandlerFunc

func (h handler) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	req.Host = req.URL.Host
	h(w, req)
	return w.Result(), nil
}

// open is a browser of its own, with sites that have no network. BROWSER_PROGRAM names another program than the first that is found.
func open(t testing.TB, s sites, change ...func(*browser.Config)) *client {
	t.Helper()
	sb := box(t, sandbox.Spec{})
	cfg := browser.Config{
		View: openWeb(t, webSettings).View("episode", 1), Site: s.site, Answers: true,
	}
	cfg.Settings.Program = os.Getenv("BROWSER_PROGRAM")
	for _, c := range change {
		c(&cfg)
	}
	b := &client{browser.New(cfg), func(context.Context) (sandbox.Sandbox, error) { return sb, nil }}
	t.Cleanup(b.Close)
	return b
}

// client is a browser with its sandbox.
type client struct {
	*browser.Browser
	box browser.Opener
}

func (c *client) do(ctx context.Context, f func(ctx context.Context, tab *browser.Tab) error) (browser.Report, error) {
	return c.Do(ctx, c.box, browser.CommandTime, f)
}

// html answers with a page.
func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>", body)
	}
}

// visit opens a page that must come.
func visit(t testing.TB, b *client, url string) (browser.Report, browser.Arrived) {
	t.Helper()
	var arrived browser.Arrived
	report, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) (err error) {
		arrived, err = tab.Navigate(ctx, url)
		return err
	})
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return report, arrived
}

// eval is the value of an expression, as JSON.
func eval(t testing.TB, b *client, expression string) string {
	t.Helper()
	var value string
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		got, err := cdp.Call(ctx, tab.Session(), runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true)})
		if err == nil && got.ExceptionDetails != nil {
			return fmt.Errorf("%s", got.ExceptionDetails.Text)
		}
		if err == nil {
			value = string(got.Result.Value)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}
