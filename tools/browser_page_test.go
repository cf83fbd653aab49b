package tools_test

import (
	"bytes"
	"context"
	"image/png"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/web"
)

// kept are the images that a model would get.
type kept [][]byte

func (k *kept) Keep(mime string, data []byte) (episode.Part, error) {
	*k = append(*k, data)
	return episode.Part{Type: episode.PartImage, MIME: mime}, nil
}

// An agent finds a product, puts it into the cart and looks at it.
func TestBrowserPage(t *testing.T) {
	e := openBrowser(t, []string{"browser", "browser-cdp"}, "shop", "forms")
	e.ok("browser_navigate", args{"url": "http://shop.test/"})
	if got := e.ok("browser_type", args{"ref": `searchbox "Search"`, "text": "kettle", "submit": true}); got["typed"] != "kettle" || got["navigated"] != true {
		t.Errorf("browser_type: %v", got)
	}
	if got := e.ok("browser_click", args{"ref": `link "Alder Kettle"`}); got["clicked"] != `link "Alder Kettle"` || got["navigated"] != true ||
		!strings.Contains(got["url"].(string), "/product/") {
		t.Errorf("browser_click: %v", got)
	}
	e.ok("browser_click", args{"ref": `button "Add to cart"`})
	seen := e.ok("browser_snapshot", args{"full": true})
	if !strings.Contains(seen["snapshot"].(string), "Alder Kettle") || seen["element_count"].(float64) < 3 || seen["pages"] != 1.0 {
		t.Errorf("browser_snapshot: %v", seen)
	}
	if got := e.ok("browser_scroll", args{"direction": "up"}); got["moved"] != 0.0 || !strings.Contains(got["notes"].([]any)[0].(string), "Nothing moved") {
		t.Errorf("browser_scroll: %v", got)
	}
	if got := e.ok("browser_press", args{"key": "Tab"}); got["pressed"] != "Tab" || got["navigated"] != nil {
		t.Errorf("browser_press: %v", got)
	}
	e.fails("unknown_key", "browser_press", args{"key": "Any"})
	if got := e.ok("browser_get_images", args{}); got["images"] == nil {
		t.Errorf("browser_get_images: %v", got)
	}
	e.fails("unknown_ref", "browser_click", args{"ref": "e9999"})
	e.fails("not_found", "browser_click", args{"ref": `button "Fly"`})
	e.fails("no_vision", "browser_vision", args{"question": "What is it?"})

	// A dialog stops the page: what cannot be done is not said to be done.
	e.ok("browser_console", args{"expression": `document.body.innerHTML = "<button onclick='r.textContent = confirm(1)'>Ask</button><p id=r>"`})
	if got := e.ok("browser_click", args{"ref": `button "Ask"`}); got["pending_dialogs"] == nil || got["clicked"] != `button "Ask"` {
		t.Errorf("a click that opens a dialog: %v", got)
	}
	if got := e.ok("browser_snapshot", args{}); got["pending_dialogs"] == nil || got["snapshot"] != nil {
		t.Errorf("a snapshot while a dialog is open: %v", got)
	}
	e.fails("dialog_open", "browser_click", args{"ref": `button "Ask"`})
	e.ok("browser_dialog", args{"action": "accept"})
	if got := e.ok("browser_snapshot", args{}); !strings.Contains(got["snapshot"].(string), `"true"`) {
		t.Errorf("after the dialog: %v", got)
	}
}

func TestBrowserVision(t *testing.T) {
	e := openBrowser(t, []string{"browser"}, "shop")
	var images kept
	w, err := web.Open(t.Context(), web.Config{Getenv: func(string) string { return "" }, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	e.session = e.session.Toolset().Session(registry.SessionConfig{
		Sandbox:  func(context.Context) (sandbox.Sandbox, error) { return e.box, nil },
		Services: []any{w.View("episode", 1, "shop")}, Sees: true, Images: &images,
	})
	t.Cleanup(e.session.Close)
	e.ok("browser_navigate", args{"url": "http://shop.test/"})
	got := e.ok("browser_vision", args{"question": "What is it?", "annotate": true})
	if len(images) != 1 {
		t.Fatalf("the model gets %d images", len(images))
	}
	size, err := png.DecodeConfig(bytes.NewReader(images[0]))
	if err != nil || size.Width != 1280 || size.Height != 720 {
		t.Errorf("the image is %+v, %v", size, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	saved, _, err := e.box.Files().Read(ctx, got["screenshot_path"].(string), 0, 10<<20)
	if err != nil || !bytes.Equal(saved, images[0]) {
		t.Errorf("the file %v has %d bytes, %v", got["screenshot_path"], len(saved), err)
	}
}
