package browser_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox"
	"trajgen/tools/browser"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// The site that is recorded is at an address of the network of sandboxes, so that the browser itself asks for it.
const recorded = `<title>Shop %s</title><link rel=stylesheet href=/style.css><h1>Items</h1><script src=/app.js></script>
<form method=post action=/order enctype=multipart/form-data><input name=item value=lamp></form><a href=/moved>more</a>`

func shop(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/style.css":
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "h1 { color: rgb(1, 2, 3) }")
	case "/app.js":
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, "fetch('/api?r=' + Math.random()).then(r => r.json()).then(j => document.body.append(j.text))")
	case "/api":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text": %q}`, "from the server "+strings.Repeat("x", 300_000))
	case "/order":
		item := r.PostFormValue("item")
		http.SetCookie(w, &http.Cookie{Name: "order", Value: item, Path: "/"})
		http.Redirect(w, r, "/thanks", http.StatusSeeOther)
	case "/thanks":
		c, err := r.Cookie("order")
		w.Header().Set("Content-Security-Policy", "script-src 'none'")
		html(fmt.Sprintf("<h1>Thanks</h1><p>%v %v</p><script>document.title = 'ran'</script>", c, err))(w, r)
	default:
		html(fmt.Sprintf(recorded, r.UserAgent()[:7]))(w, r)
	}
}

// play visits the shop and orders, and says what it saw.
func play(t *testing.T, b *client, base string) []string {
	t.Helper()
	report, arrived := visit(t, b, base+"/")
	saw := []string{report.Title, fmt.Sprint(arrived), eval(t, b, "getComputedStyle(document.querySelector('h1')).color + document.body.textContent.length")}
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		if _, err := tab.Evaluate(ctx, "document.forms[0].submit()"); err != nil {
			return err
		}
		_, err := tab.Settle(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(saw, eval(t, b, "location.pathname + document.title + document.body.textContent + document.cookie"))
}

// TestRecordThenReplay records a site that the browser asks itself, in its sandbox, and replays it where there is none.
func TestRecordThenReplay(t *testing.T) {
	dir := t.TempDir()
	record := openWeb(t, web.Settings{Mode: web.Record})
	if err := record.Record(dir, false); err != nil {
		t.Fatal(err)
	}
	b := open(t, nil, func(c *browser.Config) {
		c.View = record.View("episode", 1)
		browser.SetFlags(c, "--host-resolver-rules=MAP shop.example 127.0.0.1:8080")
	})
	serve(t, b)
	want := play(t, b, "http://shop.example")
	b.Close()
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}

	replay := openWeb(t, web.Settings{Mode: web.Replay, Recording: dir})
	view := replay.View("episode", 1)
	b = open(t, nil, func(c *browser.Config) { c.View = view })
	if diff := cmp.Diff(want, play(t, b, "http://shop.example")); diff != "" {
		t.Errorf("the replay (-recorded +replayed):\n%s", diff)
	}
	if view.Lacking() {
		t.Error("the recording lacks something")
	}
	report, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Navigate(ctx, "http://shop.example/new")
		return err
	})
	if classOf(err) != source.ReplayMiss || report.Misses != 1 || !view.Lacking() {
		t.Errorf("a page that was not recorded: %v, %+v", err, report)
	}
}

// serve has the shop served in the browser's sandbox.
func serve(t *testing.T, b *client) {
	t.Helper()
	sb, err := b.box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	if _, err := sb.Start(t.Context(), sandbox.Command{Helper: "shop", Stdout: in}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func init() {
	sandbox.RegisterHelper("shop", func(_ []string, _ io.Reader, stdout, stderr io.Writer) int {
		listener, err := net.Listen("tcp", "127.0.0.1:8080")
		if err == nil {
			fmt.Fprint(stdout, ".")
			err = http.Serve(listener, http.HandlerFunc(shop))
		}
		fmt.Fprintln(stderr, err)
		return 1
	})
}
