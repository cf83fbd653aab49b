package browser_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"trajgen/sandbox"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

const greeter = `<title>A shop</title><h1>A shop</h1><a href="/two">Two</a><input aria-label="Name">
<button onclick="document.title = 'Hello ' + document.querySelector('input').value">Greet</button><p style="height:3000px">`

// openPlace opens a place at a fake, and what a browser there works with. Pages may be of this machine.
func openPlace(t *testing.T, name string) (*placetest.Server, *place.Place, browser.Config) {
	t.Helper()
	server := placetest.Start(t, name)
	transport := &http.Transport{}
	p, err := place.Open(place.Config{
		Settings: place.Settings{Place: name, URL: server.URL}, Getenv: func(string) string { return placetest.Key },
		Transport: transport, Now: time.Now, StateDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	view := openWeb(t, web.Settings{AllowPrivate: []string{"127.0.0.1"}, Block: []string{"blocked.test"}}).View("episode", 1)
	return server, p, browser.Config{Shared: browser.Shared{Place: p}, View: view, Answers: true}
}

// TestElsewhere has a browser of each place do what tools do.
func TestElsewhere(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/two" {
			html("<title>Two</title><h1>The second</h1>")(w, r)
			return
		}
		html(greeter)(w, r)
	}))
	t.Cleanup(site.Close)
	for _, name := range place.Names() {
		t.Run(name, func(t *testing.T) {
			server, _, cfg := openPlace(t, name)
			none := func(context.Context) (sandbox.Sandbox, error) { return nil, errors.New("the sandbox is not needed") }
			b := &client{browser.New(cfg), none}
			t.Cleanup(b.Close)
			report, _ := visit(t, b, site.URL)
			if report.Provider != name || report.Title != "A shop" || report.URL != site.URL+"/" {
				t.Errorf("report %+v", report)
			}
			report, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
				p := tab.Page()
				shown, err := p.Snapshot(ctx, page.SnapshotOptions{})
				if err != nil {
					return err
				}
				for _, want := range []string{`heading "A shop"`, `link "Two" [ref=e`, `textbox "Name" [ref=e`, `button "Greet" [ref=e`} {
					if !strings.Contains(shown.Text, want) {
						t.Errorf("lacks %s:\n%s", want, shown.Text)
					}
				}
				if _, err := p.Type(ctx, `textbox "Name"`, "Ada", false); err != nil {
					return err
				}
				named, err := p.Click(ctx, `button "Greet"`)
				if err != nil || named != `button "Greet"` {
					t.Errorf("clicked %s, %v", named, err)
				}
				scrolled, err := p.Scroll(ctx, true, "")
				if err != nil || scrolled.Moved <= 0 {
					t.Errorf("scrolled %+v, %v", scrolled, err)
				}
				picture, err := p.Screenshot(ctx, false)
				if err != nil {
					return err
				}
				if _, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil {
					t.Error(err)
				}
				if found, err := p.Wait(ctx, "A shop", false, time.Second); err != nil || !found {
					t.Errorf("waited: %v, %v", found, err)
				}
				return nil
			})
			if err != nil || report.Title != "Hello Ada" {
				t.Errorf("title %q, %v", report.Title, err)
			}
			if report, err = b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
				if _, err := tab.Page().Click(ctx, `link "Two"`); err != nil {
					return err
				}
				_, err := tab.Settle(ctx)
				return err
			}); err != nil || report.URL != site.URL+"/two" {
				t.Errorf("at %s, %v", report.URL, err)
			}
			if report, err = b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
				_, err := tab.Back(ctx)
				return err
			}); err != nil || report.URL != site.URL+"/" {
				t.Errorf("back at %s, %v", report.URL, err)
			}
			for _, refused := range []string{"http://10.0.0.1/", "http://localhost:1/", "http://blocked.test/", "file:///etc/passwd"} {
				_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
					_, err := tab.Navigate(ctx, refused)
					return err
				})
				if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Blame != source.Agent {
					t.Errorf("%s: %v", refused, err)
				}
			}
			b.Close()
			if name != "cdp" && (server.Made() != 1 || server.Ended() != 1) {
				t.Errorf("%d made, %d ended", server.Made(), server.Ended())
			}
		})
	}
}

// TestShared has two episodes in one browser, one after the other, beside a page of the browser's owner.
func TestShared(t *testing.T) {
	site := httptest.NewServer(html("<title>A shop</title>"))
	t.Cleanup(site.Close)
	_, p, cfg := openPlace(t, "cdp")
	if !p.Alone() {
		t.Error("two episodes may have it at once")
	}
	for range 2 {
		b := &client{browser.New(cfg), nil}
		visit(t, b, site.URL)
		var cookies string
		if _, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
			got, err := cdp.Call(ctx, tab.Session(), runtime.Evaluate, runtime.EvaluateParams{Expression: "const was = document.cookie; document.cookie = 'a=1'; was"})
			cookies = string(got.Result.Value)
			return err
		}); err != nil || cookies != `""` {
			t.Errorf("cookies %s, %v", cookies, err)
		}
		b.Close()
	}
}

// TestLostElsewhere has a place end a session that is in use. The next call has another one.
func TestLostElsewhere(t *testing.T) {
	site := httptest.NewServer(html("<title>A shop</title>"))
	t.Cleanup(site.Close)
	server, _, cfg := openPlace(t, "steel")
	b := &client{browser.New(cfg), nil}
	visit(t, b, site.URL)
	server.End(server.Running()[0])
	_, err := b.do(t.Context(), func(ctx context.Context, tab *browser.Tab) error {
		_, err := tab.Evaluate(ctx, "1")
		return err
	})
	if err != nil {
		t.Logf("the call that lost it: %v", err)
	}
	report, _ := visit(t, b, site.URL)
	if report.Title != "A shop" || server.Made() != 2 {
		t.Errorf("%+v, %d made", report, server.Made())
	}
	b.Close()
	if len(server.Running()) != 0 {
		t.Errorf("running: %v", server.Running())
	}
}

// TestUnable asks a browser that does not speak CDP for what it cannot do.
func TestUnable(t *testing.T) {
	_, _, cfg := openPlace(t, "camofox")
	b := &client{browser.New(cfg), nil}
	t.Cleanup(b.Close)
	tests := map[string]func(ctx context.Context, tab *browser.Tab) error{
		"command": func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Command(ctx, "DOM.getDocument", nil, "", "")
			return err
		},
		"hover": func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Page().Hover(ctx, "e1")
			return err
		},
		"upload": func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Page().Upload(ctx, "e1", []string{"/etc/passwd"})
			return err
		},
		"annotate": func(ctx context.Context, tab *browser.Tab) error {
			_, err := tab.Page().Screenshot(ctx, true)
			return err
		},
	}
	for name, f := range tests {
		_, err := b.do(t.Context(), f)
		if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := b.Tabs(t.Context(), nil, "", "")
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != source.Unsupported {
		t.Errorf("tabs: %v", err)
	}
	_, _, err = b.Answer(t.Context(), nil, "", true, "")
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != "no_dialog" {
		t.Errorf("dialog: %v", err)
	}
}
