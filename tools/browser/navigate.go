package browser

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"trajgen/sandbox"
	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// Arrived is how a navigation went.
type Arrived struct {
	Status   int  // of HTTP; 0 where there is none
	Settled  bool // the page came to rest
	Download bool // what came is a file, and the page is the one before
}

// Navigate opens a URL in the tab, and waits until the page is at rest.
func (t *Tab) Navigate(ctx context.Context, to string) (Arrived, error) {
	if err := t.running.browser.address(to); err != nil {
		return Arrived{}, err
	}
	if t.fox != nil {
		return t.at(t.fox.Navigate(ctx, to))
	}
	t.mu.Lock()
	t.status = 0
	t.mu.Unlock()
	res, err := cdp.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: to})
	if err != nil {
		return Arrived{}, err
	}
	if res.IsDownload {
		t.running.downloads.awaitFirst(ctx)
		return Arrived{Download: true}, nil
	}
	if res.ErrorText != "" {
		return Arrived{}, t.running.unreached(ctx, to, res.ErrorText)
	}
	return t.rest(ctx)
}

func (t *Tab) rest(ctx context.Context) (Arrived, error) {
	settled, err := t.Settle(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	return Arrived{Status: t.status, Settled: settled}, err
}

// address says whether an agent may open an address. What the gate judges, it judges there.
func (b *Browser) address(to string) error {
	u, err := url.Parse(to)
	if to == "about:blank" {
		return nil
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return source.Errorf(source.Agent, source.BlockedURL,
			"%q is refused: only http and https are allowed, with a whole URL as in https://example.org/page", shorten(to))
	}
	if !b.elsewhere() && loopback(u) || b.cfg.site(u.Hostname()) != nil {
		return nil
	}
	return b.cfg.View.Check(to)
}

func shorten(text string) string { return chars.First(text, 200, "…") }

// unreached is why a page did not come.
func (r *running) unreached(ctx context.Context, to, text string) error {
	if why := r.gate.why(); why != nil {
		return why
	}
	unknown := func(code string) bool { return strings.Contains(text, code) }
	if slices.ContainsFunc([]string{"ERR_NAME_NOT_RESOLVED", "ERR_INTERNET_DISCONNECTED", "ERR_ADDRESS_UNREACHABLE"}, unknown) {
		if !r.online(ctx) {
			return source.Errorf(source.Agent, "no_network", "%s was not reached: sandboxes of this run have no network "+
				"(sandbox.network in the run file: full, or allowlist with sandbox.allow)", shorten(to))
		}
		return source.Errorf(source.Agent, source.NoHost, "%s was not reached: there is no such host", shorten(to))
	}
	return source.Errorf(source.Agent, "navigation_failed", "%s was not reached: %s", shorten(to), text)
}

// online says whether the sandbox has a way out.
func (r *running) online(ctx context.Context) bool {
	if r.box == nil {
		return true
	}
	ran, err := sandbox.Run(ctx, r.box, sandbox.Command{Args: []string{"cat", "/proc/net/route"}}, sandbox.RunOptions{})
	return err != nil || ran.Exit.Code != 0 || strings.Count(strings.TrimSpace(string(ran.Stdout.Bytes())), "\n") > 0
}

// Back goes to the page before.
func (t *Tab) Back(ctx context.Context) (Arrived, error) {
	if t.fox != nil {
		return t.at(t.fox.Back(ctx))
	}
	h, err := cdp.Call(ctx, t.session, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return Arrived{}, err
	}
	i := h.CurrentIndex - 1
	if i < 0 || i >= int64(len(h.Entries)) || i == 0 && h.Entries[0].URL == "about:blank" {
		return Arrived{}, source.Errorf(source.Agent, "no_history", "there is no page before this one in the tab")
	}
	entry := page.NavigateToHistoryEntryParams{EntryID: h.Entries[i].ID}
	if _, err := cdp.Call(ctx, t.session, page.NavigateToHistoryEntry, entry); err != nil {
		return Arrived{}, err
	}
	return t.rest(ctx)
}

const settleTime = 5 * time.Second // at most, once a page is loaded

// loaded waits for a page's load event, and quiet until nothing has changed for 300 ms. They run in a world of their own.
const (
	loaded = `new Promise(done => {
  if (document.readyState === 'complete') done(true); else addEventListener('load', () => done(true), {once: true});
})`
	quiet = `new Promise(done => {
  let timer;
  const end = () => { seen.disconnect(); done(true) };
  const seen = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, 300) });
  seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  timer = setTimeout(end, 300);
})`
)

// Settle waits until the page is loaded, no request is open, and nothing has changed for a while. It is false for a page that
// does not come to rest.
func (t *Tab) Settle(ctx context.Context) (bool, error) {
	if t.fox != nil {
		return true, nil // each of its requests waits by itself
	}
	if err := t.await(ctx, loaded); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		err := t.await(limited, quiet)
		if limited.Err() != nil && ctx.Err() == nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		t.mu.Lock()
		busy := len(t.loading) > 0
		t.mu.Unlock()
		if !busy {
			return true, nil
		}
	}
}

// await waits for a promise in the page, and begins again when the page goes elsewhere.
func (t *Tab) await(ctx context.Context, promise string) error {
	own := page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(t.target), WorldName: "trajgen"}
	for {
		world, err := cdp.Call(ctx, t.session, page.CreateIsolatedWorld, own)
		if err == nil {
			_, err = cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
				Expression: promise, ContextID: world.ExecutionContextID, AwaitPromise: new(true), ReturnByValue: new(true),
			})
		}
		if err == nil || ctx.Err() != nil || !replaced(err) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// replaced says that a page was replaced by another one while it was asked.
func replaced(err error) bool {
	text := err.Error()
	for _, part := range []string{"context was destroyed", "Cannot find context", "navigated or closed", "Promise was collected", "No frame"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
