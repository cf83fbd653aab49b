package place_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"trajgen/tools/browser/place"
	"trajgen/tools/browser/place/placetest"
	"trajgen/tools/web/source"
)

// openTab opens a tab at a fake of Camofox.
func openTab(t *testing.T) (*placetest.Server, *place.Remote) {
	t.Helper()
	server := placetest.Start(t, "camofox")
	p := open(t, "camofox", server.URL, t.TempDir(), nil)
	r, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return server, r
}

// TestTab does all that a tab can do.
func TestTab(t *testing.T) {
	t.Parallel()
	page := serveSite(t)
	server, r := openTab(t)
	tab, ctx := r.Tab, t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := tab.Navigate(ctx, page)
	must(err)
	shown, err := tab.Snapshot(ctx)
	must(err)
	want := "- heading \"A shop\"\n- link \"Two\" [e1]\n- textbox \"Name\" [e2]\n- img \"Pic\"\n- button \"Greet\" [e3]"
	if shown.Text != want || shown.Elements != 3 || shown.URL != page+"/" {
		t.Errorf("shown: %+v", shown)
	}
	must(tab.Type(ctx, "e2", "Ada", false))
	must(tab.Scroll(ctx, "down", 500))
	_, err = tab.Click(ctx, "e3")
	must(err)
	value, err := tab.Evaluate(ctx, "({title: document.title, y: scrollY})")
	must(err)
	if string(value) != `{"title":"Hello Ada","y":500}` {
		t.Errorf("value %s", value)
	}
	must(tab.Press(ctx, "Escape"))
	images, err := tab.Images(ctx)
	must(err)
	if len(images) != 1 || images[0].Src != page+"/i.png" || images[0].Alt != "Pic" {
		t.Errorf("images: %v", images)
	}
	picture, err := tab.Screenshot(ctx)
	must(err)
	if _, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
	if at, err := tab.Click(ctx, "e1"); err != nil || at != page+"/two" {
		t.Errorf("at %s: %v", at, err)
	}
	if at, err := tab.Back(ctx); err != nil || at != page+"/" {
		t.Errorf("back at %s: %v", at, err)
	}
	_, err = tab.Click(ctx, "e99")
	expect(t, err, place.StaleRef)
	_, err = tab.Navigate(ctx, "file:///etc/passwd")
	expect(t, err, source.Malformed)
	_, err = tab.Evaluate(ctx, "nothing.at.all")
	expect(t, err, place.BadExpression)

	server.CloseTab(r.ID)
	_, err = tab.Snapshot(ctx)
	expect(t, err, place.NoTab)
	_, err = tab.Click(ctx, "e1") // not asked any more
	expect(t, err, place.NoTab)
	if at, err := tab.Navigate(ctx, page+"/two"); err != nil || at != page+"/two" {
		t.Errorf("in a new tab at %s: %v", at, err)
	}
	if server.Made() != 1 {
		t.Errorf("%d sessions", server.Made())
	}
}

func expect(t *testing.T, err error, class string) {
	t.Helper()
	if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != class || failed.Blame != source.Agent {
		t.Errorf("got %v, want the agent's %s", err, class)
	}
}

// TestTabErrors has the server answer as it does in trouble.
func TestTabErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		says   string
		class  string
		tries  int
	}{
		{422, `{"error":"Unknown ref: e7","code":"stale_refs","recovery":"snapshot_then_retry","ref":"e7"}`, place.StaleRef, 1},
		{422, `{"error":"Element not actionable","code":"element_not_actionable"}`, place.NotActionable, 1},
		{409, `{"error":"Page changed during click.","code":"page_changed","retryable":true}`, place.PageChanged, 1},
		{410, `{"error":"Page crashed. Open a new tab.","code":"page_crashed","recovery":"create_new_tab"}`, place.NoTab, 1},
		{503, `{"error":"Browser session expired.","code":"session_expired","recovery":"retry"}`, place.NoTab, 1},
		{502, `{"error":"SSL certificate error: x","code":"ssl_error","recoverable":false}`, place.PageFailed, 1},
		{500, `{"error":"net::ERR_NAME_NOT_RESOLVED","retryable":false}`, place.PageFailed, 1},
		{503, `{"error":"User concurrency limit reached","code":"concurrency_timeout"}`, source.Unavailable, 1},
		{502, `<html>bad gateway`, source.Unavailable, 1},
		{200, `<html>hello`, source.Malformed, 1},
		{200, `{"ok":`, source.Malformed, 1},
		{403, `{"error":"Forbidden"}`, source.Refused, 1},
		{429, `{"error":"slow down"}`, source.Unavailable, 4},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.says), func(t *testing.T) {
			t.Parallel()
			n := 0
			server := placetest.Start(t, "camofox")
			server.Make(func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) bool {
				if r.URL.Path == "/tabs" {
					fmt.Fprint(w, `{"tabId":"t","url":"about:blank"}`)
					return true
				}
				if !strings.HasSuffix(r.URL.Path, "/click") {
					return false
				}
				n++
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.says)
				return true
			})
			p := open(t, "camofox", server.URL, t.TempDir(), nil)
			r, err := p.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Tab.Click(context.WithoutCancel(t.Context()), "e7")
			if failed, ok := errors.AsType[*source.Error](err); !ok || failed.Class != tt.class {
				t.Errorf("got %v", err)
			}
			if n != tt.tries {
				t.Errorf("clicked %d times", n)
			}
		})
	}
}
