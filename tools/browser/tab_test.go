package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/tools/browser"
)

func TestTabs(t *testing.T) {
	b := open(t, sites{
		"main.test": html(`<title>Main</title><h1>main</h1>`),
		"pop.test":  html(`<title>Pop</title><script>var first = [Math.random(), new Date().getUTCFullYear()]</script>`),
	})
	visit(t, b, "http://main.test/")
	report, err := run(t, b, "for (let i = 0; i < 10; i++) open('http://pop.test/?' + i); 0")
	if err != nil || report.Refused != 3 || len(report.NewTabs) != 7 || report.URL != "http://pop.test/?6" {
		t.Fatalf("ten popups: %+v, %v", report, err)
	}
	// A popup's scripts find what those of other pages do.
	if got := eval(t, b, "first"); got != `[0.08538983040489256,2026]` {
		t.Errorf("chance and time of a popup: %s", got)
	}
	tabs, _, err := b.Tabs(t.Context(), b.box, "", "")
	if err != nil || len(tabs) != 8 || tabs[0] != (browser.TabInfo{ID: "t1", URL: "http://main.test/", Title: "Main"}) || !tabs[7].Current {
		t.Fatalf("%+v, %v", tabs, err)
	}
	tabs, report, err = b.Tabs(t.Context(), b.box, "switch", "t1")
	if err != nil || report.URL != "http://main.test/" || !tabs[0].Current {
		t.Errorf("switch: %+v, %+v, %v", tabs, report, err)
	}
	if _, _, err = b.Tabs(t.Context(), b.box, "close", "t99"); classOf(err) != "no_tab" {
		t.Errorf("close a tab that is not there: %v", err)
	}
	for _, id := range []string{"t2", "t3", "t4", "t5", "t6", "t7", "t8", "t1"} {
		if _, _, err = b.Tabs(t.Context(), b.box, "close", id); err != nil {
			t.Errorf("close %s: %v", id, err)
		}
	}
	// Another one opens when there is none.
	visit(t, b, "http://main.test/")
	// A page that closes itself.
	if _, err := run(t, b, "open('http://pop.test/?x'); 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, b, "close()"); err != nil && classOf(err) != "tab_closed" {
		t.Error(err)
	}
	for n := 0; ; n++ { // it may take a moment
		if tabs, _, err = b.Tabs(t.Context(), b.box, "", ""); err == nil && len(tabs) == 1 || n > 100 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := eval(t, b, "document.title"); got != `"Main"` {
		t.Errorf("after a tab closed itself: %s", got)
	}
}

func TestBackAndConsole(t *testing.T) {
	b := open(t, sites{"a.test": html(`<title>A</title><script>console.log('one', 2, {x: 3}); console.error('bad'); nothing()</script><img src=http://b.test/none.png>`),
		"b.test": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/none.png" {
				http.NotFound(w, r)
				return
			}
			html(`<title>B</title>`)(w, r)
		}})
	back := func() (browser.Report, error) {
		return b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Back(ctx)
			return err
		})
	}
	visit(t, b, "http://a.test/")
	if _, err := back(); classOf(err) != "no_history" {
		t.Errorf("back at the beginning: %v", err)
	}
	visit(t, b, "http://b.test/")
	if report, err := back(); err != nil || report.Title != "A" {
		t.Errorf("back: %+v, %v", report, err)
	}
	var got []browser.Message
	if _, err := b.do(t.Context(), func(_ context.Context, tab *browser.Tab) error {
		got, _ = tab.Console(true)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []browser.Message{
		{Type: "log", Text: "one 2 Object"}, {Type: "error", Text: "bad"},
		{Type: "exception", Text: "Uncaught ReferenceError: nothing is not defined\n    at http://a.test/:1:93"},
		{Type: "error", Text: "Failed to load resource: the server responded with a status of 404 (Not Found) (http://b.test/none.png)"},
	}
	inOrder := func(a, b browser.Message) int { return strings.Compare(a.Text, b.Text) } // the image may fail at any time
	slices.SortFunc(want, inOrder)
	slices.SortFunc(got, inOrder)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("console (-want +got):\n%s", diff)
	}
}

func TestDownloads(t *testing.T) {
	b := open(t, sites{"files.test": func(w http.ResponseWriter, r *http.Request) {
		size := 1000
		name := "report.csv"
		switch r.URL.Path {
		case "/":
			html(`<a id=a href=/a download="../../etc/passwd">a</a><a id=b href=/b>b</a><h1>Files</h1>`)(w, r)
			return
		case "/a":
			name = "../../etc/passwd"
		case "/large":
			size = 1 << 20
		}
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte(strings.Repeat("x", size)))
	}}, func(c *browser.Config) { browser.SetRoom(c, 1<<20) })
	report, arrived := visit(t, b, "http://files.test/report")
	if !arrived.Download || len(report.Downloads) != 1 {
		t.Fatalf("%+v, %+v", report, arrived)
	}
	sb, err := b.box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home := sb.Layout().Workdir + "/downloads/"
	want := []browser.Download{{Path: home + "report.csv", Name: "report.csv", Bytes: 1000, State: "completed"}}
	if diff := cmp.Diff(want, report.Downloads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	data, _, err := sb.Files().Read(t.Context(), report.Downloads[0].Path, 0, 2000)
	if err != nil || len(data) != 1000 {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	visit(t, b, "http://files.test/")
	report, err = run(t, b, "a.click(), new Promise(r => setTimeout(r, 1000))")
	if err != nil || len(report.Downloads) != 1 || strings.Contains(strings.TrimPrefix(report.Downloads[0].Path, home), "/") {
		t.Errorf("a name that leads elsewhere: %+v, %v", report.Downloads, err)
	}
	report, err = run(t, b, "b.click(), new Promise(r => setTimeout(r, 1000))")
	if err != nil || len(report.Downloads) != 1 || report.Downloads[0].Path != home+"report-2.csv" {
		t.Errorf("a name that is taken: %+v, %v", report.Downloads, err)
	}
	if report, _ = visit(t, b, "http://files.test/large"); len(report.Downloads) != 1 || report.Downloads[0].State != "too_large" || report.Downloads[0].Path != "" {
		t.Errorf("more than there is room for: %+v", report.Downloads)
	}
}
