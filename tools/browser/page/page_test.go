package page_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"trajgen/tools/browser/page"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// chromium is the browser of all tests, with the flags that episodes have; server has the pages.
var (
	chromium context.Context
	server   *httptest.Server
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	server = httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.ExecPath("/usr/lib/chromium/chromium-headless-shell"), chromedp.WindowSize(1280, 720))
	for _, name := range []string{"in-process-gpu", "no-zygote", "disable-background-networking", "disable-dev-shm-usage", "mute-audio",
		"hide-scrollbars", "disable-site-isolation-trials"} {
		options = append(options, chromedp.Flag(name, true))
	}
	options = append(options, chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-US"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	chromium, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(chromium); err != nil {
		panic(err)
	}
	return m.Run()
}

// saved has pages that were saved from the web.
const saved = "../../web/extract/testdata/"

// serve answers with a file of testdata. OTHER in it is this server under another name.
func serve(w http.ResponseWriter, r *http.Request) {
	path := "testdata" + r.URL.Path
	if name, ok := strings.CutPrefix(r.URL.Path, "/saved/"); ok {
		path = saved + name
	}
	text, err := os.ReadFile(path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, port, _ := strings.Cut(r.Host, ":")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(strings.ReplaceAll(string(text), "OTHER", "http://localhost:"+port)))
}

// tab is a tab of the browser.
type tab struct {
	*page.Page
	t   testing.TB
	ctx context.Context
}

// open shows a page of testdata, or a text as a page, in a new tab.
func open(t testing.TB, what string) *tab {
	t.Helper()
	ctx := chromium
	if _, endless := t.(*testing.F); !endless {
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		t.Cleanup(cancel)
		ctx = limited
	}
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	tb := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	call(tb, dom.Disable, cdp.Empty{}) // chromedp mirrors the nodes of a page, which takes long for large ones
	tb.start(what)
	return tb
}

// start shows a page in the tab as if that were a new one.
func (tb *tab) start(what string) {
	tb.t.Helper()
	tb.Page = page.New(chromedp.FromContext(tb.ctx).Target)
	tb.load(what)
}

// load shows another page in the tab.
func (tb *tab) load(what string) {
	tb.t.Helper()
	url := what
	switch {
	case strings.HasPrefix(what, "<"):
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<!doctype html>" + what))
		}))
		tb.t.Cleanup(site.Close)
		url = site.URL
	case !strings.Contains(what, ":"):
		url = server.URL + "/" + what
	}
	if err := chromedp.Do(tb.ctx, chromedp.Navigate(url)); err != nil {
		tb.t.Fatalf("load %s: %v", what, err)
	}
}

// show is the text of a snapshot.
func (tb *tab) show(o page.SnapshotOptions) string {
	tb.t.Helper()
	s, err := tb.Snapshot(tb.ctx, o)
	if err != nil {
		tb.t.Fatalf("snapshot: %v", err)
	}
	return s.Text
}

// full is the text of all pages of a full snapshot, without notes.
func (tb *tab) full() []string {
	tb.t.Helper()
	var lines []string
	for part, parts := 1, 1; part <= parts; part++ {
		s, err := tb.Snapshot(tb.ctx, page.SnapshotOptions{Full: true, Part: part})
		if err != nil {
			tb.t.Fatalf("snapshot: %v", err)
		}
		parts = s.Parts
		for line := range strings.Lines(s.Text) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return lines
}

// want checks that a new snapshot has a text.
func (tb *tab) want(text string) {
	tb.t.Helper()
	if got := strings.Join(tb.full(), "\n"); !strings.Contains(got, text) {
		tb.t.Errorf("the page has no %q:\n%s", text, got)
	}
}

// class is the class of an error of the package.
func class(err error) string {
	if e, ok := err.(*page.Error); ok {
		return e.Class
	}
	if err != nil {
		return "other: " + err.Error()
	}
	return ""
}

// call sends a command of the protocol.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) R {
	tb.t.Helper()
	result, err := cdp.Call(tb.ctx, chromedp.FromContext(tb.ctx).Target, command, params)
	if err != nil {
		tb.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

func frameIDs(tree *cdppage.FrameTree) []cdp.FrameID {
	ids := []cdp.FrameID{tree.Frame.ID}
	for _, kid := range tree.ChildFrames {
		ids = append(ids, frameIDs(kid)...)
	}
	return ids
}

// run runs a script in the page.
func (tb *tab) run(script string) {
	tb.t.Helper()
	call(tb, runtime.Evaluate, runtime.EvaluateParams{Expression: script})
}

func Example() {
	ctx, cancel := chromedp.NewContext(chromium)
	defer cancel()
	const shop = `data:text/html,<h1>Shop</h1><label>Name <input></label><button onclick="this.textContent = 'Sold'">Buy</button>`
	if err := chromedp.Do(ctx, chromedp.Navigate(shop)); err != nil {
		panic(err)
	}
	p := page.New(chromedp.FromContext(ctx).Target)
	seen, _ := p.Snapshot(ctx, page.SnapshotOptions{})
	fmt.Println(seen.Text)
	clicked, err := p.Click(ctx, "e2")
	fmt.Println("clicked", clicked, err)
	seen, _ = p.Snapshot(ctx, page.SnapshotOptions{})
	fmt.Println(seen.Text)
	// Output:
	// - heading "Shop" [level=1]
	// - textbox "Name" [ref=e1]
	// - button "Buy" [ref=e2]
	// clicked button "Buy" <nil>
	// # Since the last snapshot: 0 new, 1 changed, 0 gone.
	// - heading "Shop" [level=1]
	// - textbox "Name" [ref=e1]
	// - button "Sold" [ref=e2] [focused] [changed]
}
