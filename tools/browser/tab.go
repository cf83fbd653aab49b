package browser

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"trajgen/tools/browser/place"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

const tabTime = 10 * time.Second // in which a tab is ready

// Tab is a page of the browser.
type Tab struct {
	ID string

	running *running
	target  target.ID
	ctx     context.Context // of chromedp
	cancel  context.CancelFunc
	ready   chan struct{} // closed when session or failed is set
	session *chromedp.Target
	failed  error
	dialogs dialogs

	mu      sync.Mutex // guards the rest
	id      target.SessionID
	lost    error // why it ended
	url     string
	frame   cdp.FrameID // of the whole page
	status  int
	loading map[network.RequestID]bool // requests that go on
	aborted bool                       // a document did not come, perhaps as it is a download
	end     context.CancelCauseFunc    // ends the command that goes on
	console console
	shown   Page
	fox     *place.Tab // of a browser that does not speak CDP; else nil
}

// URL is where the tab is.
func (t *Tab) URL() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.url
}

// attached takes a page that the browser has attached to. The newest is the current one.
func (r *running) attached(e *target.EventAttachedToTarget) {
	if r.context != "" && e.TargetInfo.BrowserContextID != r.context { // it is not the episode's
		r.goes(func() { r.leave(e.SessionID) })
		return
	}
	t := &Tab{
		running: r, target: e.TargetInfo.TargetID, id: e.SessionID, ready: make(chan struct{}), url: e.TargetInfo.URL,
		loading: map[network.RequestID]bool{},
	}
	t.dialogs.tab = t
	t.ctx, t.cancel = chromedp.NewContext(r.root, chromedp.WithTargetID(t.target))
	added := r.tabs.add(t)
	r.goes(func() {
		t.failed = t.setUp()
		close(t.ready)
		if !added { // the page that opened it waited until it ran
			r.shut(t.target)
			t.cancel()
		}
	})
}

// detached takes out a page that is gone.
func (r *running) detached(id target.SessionID) {
	all, _ := r.tabs.now()
	for _, t := range all {
		if t.id == id {
			t.lose(source.Errorf(source.Agent, "tab_closed", "the tab has closed"))
			go t.cancel() // it waits for an answer to what the browser need not hear
		}
	}
}

// lose takes out a tab and ends the command that goes on in it.
func (t *Tab) lose(why error) {
	t.running.tabs.remove(t)
	t.dialogs.closed()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = why
	}
	if t.end != nil {
		t.end(t.lost)
	}
}

// abandon closes a tab that must not go on.
func (t *Tab) abandon(why error) {
	t.lose(why)
	t.running.goes(func() { t.running.shut(t.target); t.cancel() })
}

// shut closes a page, whatever it does.
func (r *running) shut(id target.ID) {
	ctx, cancel := context.WithTimeout(r.life, tabTime)
	defer cancel()
	_, _ = cdp.Call(ctx, r.session, target.CloseTarget, target.CloseTargetParams{TargetID: id})
}

// close closes the page as the agent asks, and waits until it is gone.
func (t *Tab) close(ctx context.Context) error {
	t.running.shut(t.target)
	select {
	case <-t.ctx.Done():
		return nil
	case <-ctx.Done():
		return source.Errorf(source.Agent, "timeout", "the tab %s does not close", t.ID)
	}
}

//go:embed init.js
var script string

// Every page has this time at its beginning: 2026-01-01.
const startOfTime = 1767225600000

// setUp makes the page what every page is, before it runs.
func (t *Tab) setUp() error {
	if err := chromedp.Do(t.ctx); err != nil {
		return err
	}
	if err := chromedp.Listen(t.ctx, t.event); err != nil {
		return err
	}
	t.session = chromedp.FromContext(t.ctx).Target
	ctx, r := t.ctx, t.running
	init, err := r.initial(ctx, t.session)
	if err != nil {
		return err
	}
	first := page.AddScriptToEvaluateOnNewDocumentParams{Source: init, RunImmediately: new(true)}
	if _, err := cdp.Call(ctx, t.session, page.AddScriptToEvaluateOnNewDocument, first); err != nil {
		return err
	}
	bypass := network.SetBypassServiceWorkerParams{Bypass: true}
	if _, err := cdp.Call(ctx, t.session, network.SetBypassServiceWorker, bypass); err != nil {
		return err
	}
	_, err = cdp.Call(ctx, t.session, runtime.RunIfWaitingForDebugger, cdp.Empty{})
	return err
}

// initial is what runs before each page: its time counts from the start of the browser.
func (r *running) initial(ctx context.Context, session cdp.Session) (string, error) {
	r.once.Lock()
	defer r.once.Unlock()
	if r.script == "" {
		now, err := cdp.Call(ctx, session, runtime.Evaluate, runtime.EvaluateParams{Expression: "Date.now()"})
		if err != nil {
			return "", err
		}
		live := r.browser.cfg.View.Mode() == web.Live
		r.script = fmt.Sprintf("%s(%d - %s, %v)", script, startOfTime, now.Result.Value, live)
	}
	return r.script, nil
}

// tab is the current tab, opened if there is none.
func (r *running) tab(ctx context.Context) (*Tab, error) {
	_, t := r.tabs.now()
	if t == nil {
		made, err := cdp.Call(ctx, r.session, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: r.context})
		if err != nil {
			return nil, r.reason(err)
		}
		if t, err = r.tabs.byTarget(ctx, made.TargetID); err != nil {
			return nil, err
		}
	}
	select {
	case <-t.ready:
	case <-time.After(tabTime):
		r.shut(t.target)
		return nil, source.Errorf(source.Agent, "timeout", "the new tab %s did not open and was closed", t.ID)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if t.failed != nil {
		return nil, r.reason(fmt.Errorf("open a tab: %w", t.failed))
	}
	return t, nil
}

// event takes an event of the page. It must not wait.
func (t *Tab) event(e any) {
	t.mu.Lock()
	why := t.take(e)
	t.mu.Unlock()
	if why != nil {
		t.abandon(why)
	}
}

// take takes an event. t.mu is held. It returns why the tab must not go on, if that is so.
func (t *Tab) take(e any) (why error) {
	switch e := e.(type) {
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			t.frame, t.url = e.Frame.ID, e.Frame.URL+e.Frame.URLFragment
			t.dialogs.page()
		}
	case *page.EventNavigatedWithinDocument:
		if e.FrameID == t.frame {
			t.url = e.URL
		}
	case *page.EventJavascriptDialogOpening:
		return t.dialogs.opening(e)
	case *page.EventJavascriptDialogClosed:
		t.dialogs.closed()
	case *inspector.EventTargetCrashed:
		t.running.browser.tally.add(func(c *Counts) { c.Crashes++ })
		return errCrashed
	case *network.EventWebSocketCreated, *network.EventWebTransportCreated:
		t.running.browser.tally.add(func(c *Counts) { c.Unrecordable++ })
	case *network.EventRequestWillBeSent:
		if awaited(e) && len(t.loading) < maxLoading {
			t.loading[e.RequestID] = true
		}
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && e.FrameID == cdp.FrameID(t.target) {
			t.status = int(e.Response.Status)
		}
	case *network.EventResponseReceivedExtraInfo:
		t.running.gate.heard(e)
	case *network.EventLoadingFinished:
		t.running.gate.came(e)
		delete(t.loading, e.RequestID)
	case *network.EventLoadingFailed:
		delete(t.loading, e.RequestID)
		t.aborted = t.aborted || e.Canceled && e.Type == network.ResourceTypeDocument
	case *runtime.EventConsoleAPICalled:
		t.console.called(e)
	case *runtime.EventExceptionThrown:
		t.console.thrown(e)
	case *log.EventEntryAdded:
		t.console.logged(e)
	}
	return nil
}

const maxLoading = 10_000

// awaited says whether a page is at rest only when a request has ended. The ends of workers' scripts, which have other numbers,
// are not told to the page.
func awaited(e *network.EventRequestWillBeSent) bool {
	switch e.Type {
	case network.ResourceTypeDocument:
		return true
	case network.ResourceTypeEventSource, network.ResourceTypeWebSocket, network.ResourceTypePing:
		return false
	}
	return strings.Contains(string(e.RequestID), ".")
}

var errCrashed = source.Errorf(source.Agent, "crashed", "the page crashed, most likely as it used too much memory; "+
	"its tab was closed. Open another page.")
