package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// opened opens a web; record is the run directory of mode record.
func opened(t *testing.T, s web.Settings, record string) *web.Web {
	t.Helper()
	w, err := web.Open(t.Context(), web.Config{Settings: s, Getenv: func(string) string { return "" }, Now: time.Now})
	if err == nil && record != "" {
		err = w.Record(record, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// buys asks for a product, puts n of it into the cart and says what came.
func buys(t *testing.T, view *web.View, n int) (said string, err error) {
	t.Helper()
	client := &http.Client{Transport: view.Sites("call_1")}
	resp, err := client.PostForm("http://shop.test/cart", url.Values{"id": {"100"}, "quantity": {fmt.Sprint(n)}, "do": {"add"}})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + string(body), err
}

func cart(t *testing.T, view *web.View) string {
	t.Helper()
	text, err := view.State(t.Context(), "shop")
	if err != nil {
		return err.Error()
	}
	var state struct{ Cart json.RawMessage }
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	return string(state.Cart)
}

// TestSites holds that an attempt's sites answer in every mode, that a replay needs no site, and that it has no state for what
// the recorded episode did not do.
func TestSites(t *testing.T) {
	dir := t.TempDir()
	w := opened(t, web.Settings{Mode: web.Record}, dir)
	view := w.View("ep", 1, "shop")
	said, err := buys(t, view, 2)
	if err != nil || !strings.Contains(said, "Alder Kettle") {
		t.Fatalf("%v %s", err, said)
	}
	want := `[{"id":100,"name":"Alder Kettle","quantity":2,"price":4549}]`
	if got := cart(t, view); got != want {
		t.Errorf("state %s", got)
	}
	if got := cart(t, w.View("other", 1, "shop")); got != "[]" {
		t.Errorf("another attempt has the cart %s", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = opened(t, web.Settings{Mode: web.Replay, Recording: dir}, "")
	defer w.Close()
	view = w.View("ep", 1, "shop")
	if again, err := buys(t, view, 2); err != nil || again != said {
		t.Errorf("replayed %v %s", err, again)
	}
	if got := cart(t, view); got != want {
		t.Errorf("replayed state %s", got)
	}
	view = w.View("ep", 1, "shop")
	if got := cart(t, view); got != "[]" { // which the other attempt had
		t.Errorf("the state after nothing was done: %s", got)
	}
	if _, err := buys(t, view, 3); err == nil {
		t.Error("a request that is not in the recording was answered")
	}
	if got := cart(t, view); !strings.Contains(got, "the recording lacks") {
		t.Errorf("the state after something else was done: %s", got)
	}
	if _, err := buys(t, w.View("ep", 1, "shop:7"), 2); err == nil {
		t.Error("a site with another seed was answered")
	}
}

// TestSitesBelongToTasks holds that only the task's sites are there, and no state for who asks over HTTP.
func TestSitesBelongToTasks(t *testing.T) {
	w := opened(t, web.Settings{}, "")
	defer w.Close()
	view := w.View("ep", 1, "shop:3")
	for host, want := range map[string]bool{"shop.test": true, "SHOP.test": true, "forum.test": false,
		"shop.test.example": false} {
		if view.Serves(host) != want {
			t.Errorf("Serves(%s) is %v", host, !want)
		}
	}
	for _, address := range []string{"http://forum.test/", "http://example.org/"} {
		if _, err := (&http.Client{Transport: view.Sites("c")}).Get(address); err == nil || !strings.Contains(err.Error(),
			"no site") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := view.State(t.Context(), "forum"); err == nil {
		t.Error("the state of a site that is not the task's")
	}
	if _, err := w.View("ep", 1).State(t.Context(), "shop"); err == nil || err.Error() != "the task names no sites" {
		t.Errorf("state without sites: %v", err)
	}
	if _, err := w.View("ep", 1, "shpo").State(t.Context(), "shpo"); err == nil || !strings.Contains(err.Error(),
		`unknown site "shpo"`) {
		t.Errorf("state of an unknown site: %v", err)
	}
	resp, err := (&http.Client{Transport: view.Sites("c")}).Get("http://shop.test/.state?changes=0&history=0000000000000000")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("an agent asks for the state: %v, %v", resp, err)
	}
}

// TestSitesByTools holds that the web tools read sites in modes that have no live web for them, beside what they read otherwise.
func TestSitesByTools(t *testing.T) {
	for _, s := range []web.Settings{{}, {Mode: web.Corpus, Corpus: web.Bundled}} {
		w := opened(t, s, "")
		defer w.Close()
		call := w.View("ep", 1, "shop").Call("c")
		pages, err := call.Read(t.Context(), []string{"http://127.0.0.1/", "http://shop.test/product/100", "http://shop.test/x"})
		if err != nil || len(pages) != 3 {
			t.Fatalf("%v, %v", pages, err)
		}
		if pages[0].Error == nil || pages[1].Error != nil || !strings.Contains(pages[1].Text, "Alder Kettle") ||
			pages[2].Error.Class != "http_404" {
			t.Errorf("mode %q: %+v", s.Mode, pages)
		}
		crawled, err := call.Crawl(t.Context(), source.Crawl{URL: "http://shop.test/", Limit: 3, Depth: 1})
		if err != nil || len(crawled) != 3 {
			t.Errorf("mode %q: crawled %d pages, %v", s.Mode, len(crawled), err)
		}
		if by := call.Came(pages).By; !strings.HasSuffix(by, ", sites 1") {
			t.Errorf("mode %q: by %s", s.Mode, by)
		}
	}
}

// TestFormsInParts holds that a replay knows a form again whose browser draws another boundary.
func TestFormsInParts(t *testing.T) {
	send := func(view *web.View, boundary string) error {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		if err := form.SetBoundary(boundary); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"do": "add"} {
			if err := form.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		form.Close()
		resp, err := (&http.Client{Transport: view.Sites("c")}).Post("http://shop.test/cart", form.FormDataContentType(), &body)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	dir := t.TempDir()
	w := opened(t, web.Settings{Mode: web.Record}, dir)
	if err := send(w.View("ep", 1, "shop"), "----WebKitFormBoundaryAAAA"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = opened(t, web.Settings{Mode: web.Replay, Recording: dir}, "")
	defer w.Close()
	if err := send(w.View("ep", 1, "shop"), "----WebKitFormBoundaryBBBB"); err != nil {
		t.Error(err)
	}
}
