package place

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Classes of what goes wrong in a Tab, beside those of source.
const (
	NoTab         = "no_page"        // the tab has ended: its page crashed, or did not answer
	StaleRef      = "stale_ref"      // the page has no such element any more
	NotActionable = "not_actionable" // the element cannot be clicked or typed into
	PageChanged   = "page_changed"   // the page changed while something was done
	PageFailed    = "page_error"     // the page, or the key or address that was given, did not do
	BadExpression = "exception"      // an expression failed
)

// Tab is a browser that is driven by the requests of Camofox. Its methods may be called from many goroutines, and run one after
// the other. What the page answers is of a stranger.
type Tab struct {
	client *provider.Client
	key    string
	user   string // of the server: has the cookies

	mu sync.Mutex // held by a request
	id string     // "" before there is one, and after it has ended
}

// open makes the tab. The caller holds mu, or has the Tab alone.
func (t *Tab) open(ctx context.Context) error {
	var made struct{ TabID string }
	body := map[string]any{"userId": t.user, "sessionKey": "episode"}
	r := provider.Request{Method: http.MethodPost, Path: "/tabs", Header: bearer(t.key), JSON: body, Costly: true}
	err := t.client.Ask(ctx, r, &made)
	if err == nil && made.TabID == "" {
		err = t.client.Errorf(source.Outage, source.Malformed, "its answer to a wish for a tab lacks the id")
	}
	t.id = made.TabID
	return err
}

// send sends a request about the tab. What does something is not done twice.
func (t *Tab) send(ctx context.Context, method, path string, fields map[string]any) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.id == "" {
		if path != "navigate" {
			return nil, noTab("The page is gone.")
		}
		if err := t.open(ctx); err != nil {
			return nil, err
		}
	}
	r := provider.Request{Method: method, Path: "/tabs/" + url.PathEscape(t.id) + "/" + path, Header: bearer(t.key), Judge: t.judge}
	if method == http.MethodGet {
		r.Query = url.Values{"userId": {t.user}}
		for name, value := range fields {
			r.Query.Set(name, value.(string))
		}
	} else {
		body := map[string]any{"userId": t.user}
		for name, value := range fields {
			body[name] = value
		}
		r.JSON, r.Costly = body, true
	}
	body, err := t.client.Send(ctx, r)
	if failed, ok := errors.AsType[*source.Error](err); ok && failed.Class == NoTab {
		t.id = "" // the next page needs another one
	}
	return body, err
}

func (t *Tab) ask(ctx context.Context, method, path string, fields map[string]any, answer any) error {
	body, err := t.send(ctx, method, path, fields)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return t.client.Errorf(source.Outage, source.Malformed, "its answer cannot be read: %s", t.client.Excerpt(err.Error()))
	}
	return nil
}

func noTab(why string) *source.Error {
	return source.Errorf(source.Agent, NoTab, "%s Open a page with browser_navigate.", why)
}

// judge is what the server's errors about a tab mean.
func (t *Tab) judge(status int, body []byte) *source.Error {
	var said struct{ Error, Code string }
	if status < 400 || json.Unmarshal(body, &said) != nil {
		return nil
	}
	says := t.client.Excerpt(said.Error)
	switch said.Code {
	case "stale_refs":
		return source.Errorf(source.Agent, StaleRef, "The page has no such element: take a new snapshot with browser_snapshot.")
	case "element_not_actionable", "ambiguous_selector":
		return source.Errorf(source.Agent, NotActionable, "That cannot be done to the element: %s", says)
	case "page_changed", "navigation_race":
		return source.Errorf(source.Agent, PageChanged, "The page changed meanwhile: take a new snapshot with browser_snapshot.")
	case "page_crashed":
		return noTab("The page crashed.")
	case "tab_destroyed", "tab_unresponsive", "tab_timeout", "browser_restarted", "session_expired":
		return noTab("The page does not answer any more and was closed.")
	case "ssl_error":
		return source.Errorf(source.Agent, PageFailed, "The page cannot be opened: %s", says)
	}
	switch {
	case status == http.StatusNotFound && strings.Contains(said.Error, "Tab not found"):
		return noTab("The page was closed.")
	case status == http.StatusBadRequest:
		return source.Errorf(source.Agent, source.Malformed, "The browser refuses it: %s", says)
	case status == http.StatusInternalServerError: // how it reports what a page did: a name that is not known, a key that is none
		return source.Errorf(source.Agent, PageFailed, "It failed: %s", says)
	case status == http.StatusServiceUnavailable: // also with Retry-After, it may have begun
		return t.client.Errorf(source.Outage, source.Unavailable, "it has too much to do, or failed (status %d): %s", status, says)
	}
	return nil
}

// Navigate opens a page, and returns its URL after redirects.
func (t *Tab) Navigate(ctx context.Context, address string) (string, error) {
	return t.where(ctx, "navigate", map[string]any{"url": address})
}

// where does something that answers with the page's URL.
func (t *Tab) where(ctx context.Context, path string, fields map[string]any) (string, error) {
	var page struct{ URL string }
	err := t.ask(ctx, http.MethodPost, path, fields, &page)
	return page.URL, err
}

// Snapshot is what is on the page.
type Snapshot struct {
	URL      string
	Text     string `json:"snapshot"`  // a line for each element, with its ref as in [e3]
	Elements int    `json:"refsCount"` // that have a ref
}

// Snapshot lists what is on the page. The server leaves out the middle of what has more than 80,000 characters, and says so in
// the text.
func (t *Tab) Snapshot(ctx context.Context) (s Snapshot, err error) {
	err = t.ask(ctx, http.MethodGet, "snapshot", nil, &s)
	return s, err
}

// Click clicks an element, and returns the page's URL thereafter.
func (t *Tab) Click(ctx context.Context, ref string) (string, error) {
	return t.where(ctx, "click", map[string]any{"ref": ref})
}

// Type replaces the text of a field, and presses Enter thereafter if submit is set.
func (t *Tab) Type(ctx context.Context, ref, text string, submit bool) error {
	_, err := t.send(ctx, http.MethodPost, "type", map[string]any{"ref": ref, "text": text, "submit": submit})
	return err
}

// Press presses a key, such as Enter or Control+a.
func (t *Tab) Press(ctx context.Context, key string) error {
	_, err := t.send(ctx, http.MethodPost, "press", map[string]any{"key": key})
	return err
}

// Scroll scrolls the page by so many pixels, up or down.
func (t *Tab) Scroll(ctx context.Context, direction string, pixels int) error {
	_, err := t.send(ctx, http.MethodPost, "scroll", map[string]any{"direction": direction, "amount": pixels})
	return err
}

// Back goes to the page before, and returns its URL.
func (t *Tab) Back(ctx context.Context) (string, error) { return t.where(ctx, "back", nil) }

// Image is a picture of the page.
type Image struct {
	Src, Alt      string
	Width, Height int
}

// Images are the pictures of the page; the server tells at most 20.
func (t *Tab) Images(ctx context.Context) ([]Image, error) {
	var found struct{ Images []Image }
	err := t.ask(ctx, http.MethodGet, "images", map[string]any{"limit": "20"}, &found)
	return found.Images, err
}

// Screenshot is a PNG of what is in view.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	return t.send(ctx, http.MethodGet, "screenshot", nil)
}

// Title is the title of the page; "" where it cannot be had.
func (t *Tab) Title(ctx context.Context) (title string) {
	if value, err := t.Evaluate(ctx, "document.title"); err == nil {
		_ = json.Unmarshal(value, &title)
	}
	return title
}

// Evaluate is the value of an expression of JavaScript in the page, as JSON.
func (t *Tab) Evaluate(ctx context.Context, expression string) (json.RawMessage, error) {
	var answer struct{ Result json.RawMessage }
	err := t.ask(ctx, http.MethodPost, "evaluate", map[string]any{"expression": expression}, &answer)
	if failed, ok := errors.AsType[*source.Error](err); ok && failed.Class == PageFailed {
		failed.Class = BadExpression
	}
	if len(answer.Result) == 0 {
		answer.Result = json.RawMessage("null") // undefined
	}
	return answer.Result, err
}
