package placetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

// tab is a tab of Camofox, here of a Chromium.
type tab struct {
	id  string
	ctx context.Context
}

// newTab opens the tab of a session.
func (s *Server) newTab(user string) string {
	browser := s.browser(user)
	allocator, cancel := remote.NewAllocator(context.Background(), browser.Socket, remote.NoModifyURL)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("%s-tab-%d", user, len(s.got))
	s.sessions[user].tab = &tab{id: id, ctx: ctx}
	s.t.Cleanup(cancel)
	return id
}

// CloseTab closes the tab of a session, as Camofox does with one that does not answer.
func (s *Server) CloseTab(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[user].tab = nil
}

// refs gives the elements of a page their refs, and lists them as Playwright's aria snapshot does.
const refs = `(() => {
	let n = 0; const out = []
	document.querySelectorAll("h1,a,button,input,img").forEach(e => {
		const role = {A: "link", BUTTON: "button", INPUT: "textbox", H1: "heading", IMG: "img"}[e.tagName]
		const name = e.getAttribute("aria-label") || e.alt || e.textContent.trim()
		let line = "- " + role + ' "' + name + '"'
		if (role != "heading" && role != "img") { e.dataset.ref = "e" + ++n; line += " [e" + n + "]" }
		if (e.value) line += ": " + e.value
		out.push(line)
	})
	return {snapshot: out.join("\n"), refsCount: n}
})()`

// serveTab serves requests about tabs.
func serveTab(s *Server, w http.ResponseWriter, r *http.Request, body map[string]any) bool {
	id, what, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/tabs/"), "/")
	if !ok || !strings.HasPrefix(r.URL.Path, "/tabs/") {
		return false
	}
	user, _ := body["userId"].(string)
	if r.Method == http.MethodGet {
		user = r.URL.Query().Get("userId")
	}
	s.mu.Lock()
	one := s.sessions[user]
	var t *tab
	if one != nil {
		t = one.tab
	}
	s.mu.Unlock()
	if t == nil || t.id != id {
		say(w, http.StatusNotFound, object{"error": "Tab not found"})
		return true
	}
	if what == "screenshot" {
		picture, err := run(t, chromedp.CaptureScreenshot())
		if err != nil {
			say(w, http.StatusInternalServerError, object{"error": err.Error()})
			return true
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture)
		return true
	}
	status, answer := t.do(what, body)
	say(w, status, answer)
	return true
}

// do does what a request wants, and returns what Camofox answers.
func (t *tab) do(what string, body map[string]any) (int, any) {
	var err error
	answer := object{"ok": true}
	switch what {
	case "navigate":
		address, _ := body["url"].(string)
		if !strings.HasPrefix(address, "http") {
			return http.StatusBadRequest, object{"error": "Blocked URL scheme: (only http/https allowed)"}
		}
		_, err = run(t, chromedp.Navigate(address))
	case "snapshot":
		var value []byte
		if value, err = run(t, chromedp.Evaluate[[]byte](refs)); err == nil {
			err = json.Unmarshal(value, &answer)
		}
	case "click", "type":
		if found, _ := run(t, chromedp.Evaluate[bool](element(body)+" != null")); !found {
			return http.StatusUnprocessableEntity,
				object{"error": "Unknown ref", "code": "stale_refs", "retryable": true, "ref": body["ref"]}
		}
		act := ".click()"
		if what == "type" {
			act = fmt.Sprintf(".focus(), document.activeElement.value = %q", body["text"])
		}
		_, err = run(t, chromedp.Evaluate[chromedp.Void](element(body)+act))
		time.Sleep(300 * time.Millisecond) // as Camofox does, for what a click begins
	case "press":
		_, err = run(t, chromedp.KeyEvent(fmt.Sprint(body["key"])))
	case "scroll":
		by := fmt.Sprintf("window.scrollBy(0, %v * (%q == 'up' ? -1 : 1))", body["amount"], body["direction"])
		_, err = run(t, chromedp.Evaluate[chromedp.Void](by))
	case "back":
		_, err = run(t, chromedp.NavigateBack())
	case "images":
		var value []byte
		if value, err = run(t, chromedp.Evaluate[[]byte](
			"({images: [...document.images].map(i => ({src: i.src, alt: i.alt, width: i.naturalWidth, height: i.naturalHeight}))})")); err == nil {
			err = json.Unmarshal(value, &answer)
		}
	case "evaluate":
		var value []byte
		value, err = run(t, chromedp.Evaluate[[]byte](fmt.Sprint(body["expression"]), chromedp.EvalAwaitPromise))
		answer["result"] = json.RawMessage(value)
	default:
		return http.StatusNotFound, object{"error": "no such request"}
	}
	if err != nil {
		return http.StatusInternalServerError, object{"error": err.Error(), "retryable": false}
	}
	answer["url"], _ = run(t, chromedp.Evaluate[string]("location.href"))
	return http.StatusOK, answer
}

func run[T any](t *tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, 20*time.Second)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// element is an expression for the element of a ref.
func element(body map[string]any) string {
	return fmt.Sprintf("document.querySelector('[data-ref=%q]')", body["ref"])
}
