package browser

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
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

const (
	maxTabs = 8
	tabTime = 10 * time.Second // in which a tab is ready
)

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

	mu      sync.Mutex // guards the rest
	id      target.SessionID
	lost    error // why it ended
	url     string
	frame   cdp.FrameID // of the whole page
	status  int
	loading map[network.RequestID]bool // requests that go on
	aborted bool                       // a document did not come, perhaps as it is a download
	dialog  *Dialog                    // the one that waits for an answer
	dialogs int                        // since the page came
	count   int                        // dialogs in all
	end     context.CancelCauseFunc    // ends the command that goes on
	console console
	shown   Page
	fox     *place.Tab // of a browser that does not speak CDP; else nil
}

// Session is how commands reach the page.
func (t *Tab) Session() cdp.Session { return t.session }

// URL is where the tab is.
func (t *Tab) URL() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.url
}

// tabs are the pages of a browser, in the order in which they came.
type tabs struct {
	mu      sync.Mutex // guards the rest
	all     []*Tab
	current *Tab
	count   int
	refused int           // tabs that were one too many
	came    chan struct{} // closed when one comes
}

// attached takes a page that the browser has attached to. The newest is the current one.
func (r *running) attached(e *target.EventAttachedToTarget) {
	if r.foreign(e.TargetInfo) {
		r.goes(func() { r.leave(e.SessionID) })
		return
	}
	t := &Tab{
		running: r, target: e.TargetInfo.TargetID, id: e.SessionID, ready: make(chan struct{}), url: e.TargetInfo.URL,
		loading: map[network.RequestID]bool{},
	}
	t.ctx, t.cancel = chromedp.NewContext(r.root, chromedp.WithTargetID(t.target))
	r.tabs.mu.Lock()
	defer r.tabs.mu.Unlock()
	if len(r.tabs.all) >= maxTabs {
		r.tabs.refused++
		r.goes(func() {
			_ = t.setUp() // the page that opened it waits until it runs
			r.shut(t.target)
			t.cancel()
		})
		return
	}
	r.tabs.count++
	t.ID = fmt.Sprintf("t%d", r.tabs.count)
	r.tabs.all, r.tabs.current = append(r.tabs.all, t), t
	if r.tabs.came != nil {
		close(r.tabs.came)
		r.tabs.came = nil
	}
	r.goes(func() { t.failed = t.setUp(); close(t.ready) })
}

// detached takes out a page that is gone.
func (r *running) detached(id target.SessionID) {
	for _, t := range r.list() {
		if t.id == id {
			t.lose(source.Errorf(source.Agent, "tab_closed", "the tab has closed"))
			go t.cancel() // it waits for an answer to what the browser need not hear
		}
	}
}

// lose takes out a tab and ends the command that goes on in it. The tab that came before it is the current one again.
func (t *Tab) lose(why error) {
	r := t.running
	r.tabs.mu.Lock()
	if i := slices.Index(r.tabs.all, t); i >= 0 {
		r.tabs.all = slices.Delete(r.tabs.all, i, i+1)
		if r.tabs.current == t {
			if r.tabs.current = nil; len(r.tabs.all) > 0 {
				r.tabs.current = r.tabs.all[max(i-1, 0)]
			}
		}
	}
	r.tabs.mu.Unlock()
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
	r.tabs.mu.Lock()
	t := r.tabs.current
	r.tabs.mu.Unlock()
	if t == nil {
		made, err := cdp.Call(ctx, r.session, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: r.context})
		if err != nil {
			return nil, r.reason(err)
		}
		if t, err = r.byTarget(ctx, made.TargetID); err != nil {
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

// byTarget waits until the browser has told of a page.
func (r *running) byTarget(ctx context.Context, id target.ID) (*Tab, error) {
	for {
		r.tabs.mu.Lock()
		i := slices.IndexFunc(r.tabs.all, func(t *Tab) bool { return t.target == id })
		if i >= 0 {
			defer r.tabs.mu.Unlock()
			return r.tabs.all[i], nil
		}
		if r.tabs.came == nil {
			r.tabs.came = make(chan struct{})
		}
		came := r.tabs.came
		r.tabs.mu.Unlock()
		select {
		case <-came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// shut closes a page, whatever it does.
func (r *running) shut(id target.ID) {
	ctx, cancel := context.WithTimeout(r.life, tabTime)
	defer cancel()
	_, _ = cdp.Call(ctx, r.session, target.CloseTarget, target.CloseTargetParams{TargetID: id})
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
			t.frame, t.url, t.dialogs = e.Frame.ID, e.Frame.URL+e.Frame.URLFragment, 0
		}
	case *page.EventNavigatedWithinDocument:
		if e.FrameID == t.frame {
			t.url = e.URL
		}
	case *page.EventJavascriptDialogOpening:
		return t.opening(e)
	case *page.EventJavascriptDialogClosed:
		t.dialog = nil
	case *inspector.EventTargetCrashed:
		t.running.gate.tally.add(func(c *Counts) { c.Crashes++ })
		return errCrashed
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
