package browser_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/browser"
)

// processes are the browser's in a sandbox.
func processes(t testing.TB, b *client) int {
	t.Helper()
	sb, err := b.box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const count = `cat /proc/[0-9]*/comm 2>/dev/null | grep -c -e chrom -e headless`
	ran, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", count}}, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(ran.Stdout.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLeaks opens and closes browsers, and looks for what they leave. BROWSERS=500 opens as many.
func TestLeaks(t *testing.T) {
	times := 5
	if n, err := strconv.Atoi(os.Getenv("BROWSERS")); err == nil {
		times = n
	}
	sb := box(t, sandbox.Spec{})
	view := openWeb(t, webSettings).View("episode", 1)
	pages := sites{"page.test": html(`<script>open('/?'); new Worker(URL.createObjectURL(new Blob(['1'])));</script><img src=/x.png>`)}
	once := func() {
		b := &client{browser.New(browser.Config{View: view, Site: pages.site, Answers: true}), func(context.Context) (sandbox.Sandbox, error) { return sb, nil }}
		if _, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Navigate(ctx, "http://page.test/")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		b.Close()
		for n := 0; processes(t, b) != 0; n++ { // a page's process ends soon after the browser's
			if n > 100 {
				t.Fatal("processes are left")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if left, err := sb.Files().List(t.Context(), sb.Layout().Tmp); err != nil || len(left) != 1 {
			t.Fatalf("files that are left: %v, %v", left, err)
		}
	}
	once()
	before := settled(0)
	for range times {
		once()
	}
	if after := settled(before); after > before+2 {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after %d browsers:\n%s", before, after, times, stacks[:runtime.Stack(stacks, true)])
	}
}

// settled is how many goroutines there are once at most want are left, or after a while.
func settled(want int) int {
	for range 50 {
		if runtime.NumGoroutine() <= want {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// Of a pool's places no more are taken than there are, and one that is given back goes to who waits.
func TestPool(t *testing.T) {
	pool := browser.NewPool(1)
	in := func(c *browser.Config) { c.Pool = pool }
	pages := sites{"page.test": html(`<h1>x</h1>`)}
	first, second := open(t, pages, in), open(t, pages, in)
	visit(t, first, "http://page.test/")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := second.Wait(ctx); err == nil {
		t.Fatal("a second browser has a place")
	}
	if err := first.Wait(ctx); err != nil {
		t.Errorf("a browser waits for the place that it has: %v", err)
	}
	got := make(chan error)
	go func() { got <- second.Wait(t.Context()) }()
	first.Close()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	visit(t, second, "http://page.test/")
	second.Close()
	second.Close()
	if err := browser.New(browser.Config{Shared: browser.Shared{Pool: pool}}).Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A browser that has died keeps its place: the call that starts it again need not wait, as it would on its own clock.
func TestPoolAfterDeath(t *testing.T) {
	pool := browser.NewPool(1)
	b := open(t, sites{"page.test": html(`<h1>x</h1>`)}, func(c *browser.Config) { c.Pool = pool })
	visit(t, b, "http://page.test/")
	waiting, stop := context.WithCancel(t.Context())
	other := make(chan error)
	go func() { other <- browser.New(browser.Config{Shared: browser.Shared{Pool: pool}}).Wait(waiting) }()
	kill(t, b)
	for range 2 { // the first call may be the one that finds out
		_, _ = run(t, b, "1")
	}
	visit(t, b, "http://page.test/")
	stop()
	if err := <-other; err == nil {
		t.Error("another episode got the place of a browser that starts again")
	}
}

// A browser that is not used ends, and starts again with the next call, which says so.
func TestIdle(t *testing.T) {
	b := open(t, sites{"page.test": html(`<h1>x</h1>`)}, func(c *browser.Config) { c.Settings.Idle = 1 })
	visit(t, b, "http://page.test/")
	for n := 0; processes(t, b) > 0; n++ {
		if n > 100 {
			t.Fatal("the browser lives on")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if report, _ := visit(t, b, "http://page.test/"); !strings.Contains(report.Note, "not used") {
		t.Errorf("note %q", report.Note)
	}
}

// A sandbox with too little memory says what is needed.
func TestMemory(t *testing.T) {
	sb := box(t, sandbox.Spec{Limits: sandbox.Limits{Memory: 40 << 20}})
	b := open(t, sites{"page.test": html(`<script>window.x = new Uint8Array(2e8).fill(1)</script>`)})
	b.box = func(context.Context) (sandbox.Sandbox, error) { return sb, nil }
	for range 3 {
		_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Navigate(ctx, "http://page.test/")
			return err
		})
		if err != nil && strings.Contains(err.Error(), "512 MB") {
			return
		}
		t.Log(err)
	}
	t.Error("the error does not say that the memory was too little")
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		give browser.Settings
		want string
	}{
		{browser.Settings{}, ""},
		{browser.Settings{Pool: 3, Idle: 30, Program: "/usr/bin/chromium"}, ""},
		{browser.Settings{Pool: -1}, "pool is -1"},
		{browser.Settings{Idle: 5}, "at least 30"},
		{browser.Settings{Program: "chromium"}, "not an absolute path"},
	} {
		if err := tt.give.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.give, err, tt.want)
		}
	}
}
