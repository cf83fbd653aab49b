package browser_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// Hostile pages cost an agent a call, and the next one works.
func TestHostile(t *testing.T) {
	b := open(t, sites{
		"busy.test":    html(`<script>while (true);</script>`),
		"later.test":   html(`<h1>x</h1>`),
		"heap.test":    html(`<script>const all = []; while (true) all.push(new Uint8Array(5e7).fill(1))</script>`),
		"endless.test": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"header.test": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		},
		"bytes.test": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Bytes", "\x00\xff") },
		"shout.test": html(`<script>for (let i = 0; i < 200; i++) console.log('x'.repeat(1e4)); console.log('x'.repeat(5e6))</script><h1>x</h1>`),
		"files.test": html(`<iframe src="file:///etc/passwd"></iframe><a href="file:///etc/passwd">x</a><script>
document.links[0].click(); open('file:///etc/passwd'); location = 'chrome://crash'</script><h1>x</h1>`),
		"fine.test": html(`<h1>fine</h1>`),
	})
	for _, tt := range []struct {
		name, url, then string
		want            string
		limit           time.Duration
	}{
		{"a loop", "http://busy.test/", "", "timeout", time.Second},
		{"a loop later", "http://later.test/", "setTimeout(() => { while (true); }, 10); new Promise(r => setTimeout(r, 100))", "timeout", time.Minute},
		{"all memory", "http://heap.test/", "", "crashed", time.Minute},
		{"endless redirects", "http://endless.test/", "", "navigation_failed", time.Minute},
		{"a long header", "http://header.test/", "", "too_large", time.Minute},
		{"a header that is none", "http://bytes.test/", "", "malformed", time.Minute},
		{"a loud console", "http://shout.test/", "", "", time.Minute},
		{"files", "http://files.test/", "", "", time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Do(t.Context(), b.box, tt.limit, func(ctx context.Context, tab *browser.Tab) error {
				_, err := tab.Navigate(ctx, tt.url)
				return err
			})
			if err == nil && tt.then != "" {
				_, err = run(t, b, tt.then)
			}
			if got := classOf(err); got != tt.want && !(err == nil && tt.want == "") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if report, _ := visit(t, b, "http://fine.test/"); report.Note != "" {
				t.Errorf("the browser ended: %+v", report)
			}
			if got := eval(t, b, "document.body.textContent"); got != `"fine"` {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// A browser that dies says why, and starts again.
func TestDeath(t *testing.T) {
	b := open(t, sites{"fine.test": html(`<h1>fine</h1>`)})
	visit(t, b, "http://fine.test/")
	sb, err := b.box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"pkill", "-9", "-f", "remote-debugging-pipe"}}, sandbox.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	var note string
	for range 2 {
		report, _ := run(t, b, "1")
		note += report.Note
	}
	if note == "" {
		t.Error("the next call does not say that the pages are gone")
	}
	visit(t, b, "http://fine.test/")
	b.Close()
	if _, err := run(t, b, "1"); classOf(err) != "closed" {
		t.Errorf("after the end: %v", err)
	}
}
