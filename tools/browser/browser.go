// Package browser is the browser of an episode: a Chromium in the episode's sandbox, whose requests are judged and answered here.
package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"trajgen/sandbox"
	"trajgen/tools/browser/place"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// Shared is what the browsers of a run have in common.
type Shared struct {
	Settings Settings
	Pool     *Pool
	Place    *place.Place // nil for the sandboxes of the episodes
}

// Config is what an episode's browser works with.
type Config struct {
	Shared
	View *web.View
	// Site answers for a host that is not asked over the network; nil for every other host. Without it these are the sites of the
	// task.
	Site func(host string) http.RoundTripper
	// Answers says that the agent can answer dialogs. Else they are dismissed.
	Answers bool

	flags    []string      // further ones of the program
	given    *given        // files for forms
	room     int64         // for downloads, in bytes; 0 is maxDownloads
	patience time.Duration // with a dialog; 0 is maxAnswerTime
}

func (c *Config) site(host string) http.RoundTripper {
	switch {
	case c.Site != nil:
		return c.Site(host)
	case c.View.Serves(host):
		return c.View.Sites("browser")
	}
	return nil
}

// Opener is the episode's sandbox, opened if necessary.
type Opener func(context.Context) (sandbox.Sandbox, error)

// Browser is an episode's. It starts when it is first used, ends when nothing uses it for a while, and starts again.
type Browser struct {
	cfg   Config
	tally tally
	use   chan struct{} // held by the call that uses the browser

	mu     sync.Mutex // guards the rest
	place  bool       // one of the pool is taken
	run    *running   // nil while none lives
	idle   *time.Timer
	used   int // times that idle was set
	closed bool
	note   string   // what the next call has to say
	told   []Dialog // dialogs that were answered without the agent
}

// New is a browser that has not started.
func New(cfg Config) *Browser {
	cfg.given = &given{}
	return &Browser{cfg: cfg, use: make(chan struct{}, 1)}
}

// Wait waits for a place in the pool. A call that comes soon afterwards need not wait: the place is kept for as long as a browser
// that is not used.
func (b *Browser) Wait(ctx context.Context) error {
	if b.rests() {
		return nil
	}
	if err := b.cfg.Pool.enter(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	taken := !b.place && !b.closed
	b.place = b.place || taken
	b.mu.Unlock()
	if !taken {
		b.cfg.Pool.leave()
	}
	b.rests()
	return nil
}

func (b *Browser) idleTime() time.Duration {
	return time.Duration(cmp.Or(b.cfg.Settings.Idle, defaultIdle)) * time.Second
}

// rests begins to wait for the end of a browser that is not used. It is false for one that has no place and may yet get one.
func (b *Browser) rests() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !b.place {
		return b.closed
	}
	if b.idle != nil {
		b.idle.Stop()
	}
	b.used++
	used := b.used
	b.idle = time.AfterFunc(b.idleTime(), func() {
		select {
		case b.use <- struct{}{}:
			defer func() { <-b.use }()
			b.end(used, fmt.Sprintf("The browser was not used for %s and has ended; its pages are gone.", b.idleTime()))
		default: // it is in use
		}
	})
	return true
}

// Close ends the browser for good.
func (b *Browser) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(0, "")
}

// end ends what runs, and gives the place back, unless the browser was used since: 0 is whether or not.
func (b *Browser) end(used int, note string) {
	b.mu.Lock()
	if used != 0 && used != b.used {
		b.mu.Unlock()
		return
	}
	r, place := b.run, b.place
	b.run, b.place = nil, false
	if b.idle != nil {
		b.idle.Stop()
	}
	if r != nil {
		b.note = note
	}
	b.mu.Unlock()
	if r != nil {
		r.close()
	}
	if place {
		b.cfg.Pool.leave()
	}
}

// living is the browser's process, started if necessary.
func (b *Browser) living(ctx context.Context, in Opener) (*running, error) {
	b.mu.Lock()
	r, closed := b.run, b.closed
	b.mu.Unlock()
	if closed {
		return nil, source.Errorf(source.Agent, "closed", "the episode has ended")
	}
	if r != nil && r.lives() {
		return r, nil
	}
	if r != nil {
		why := r.proc.why()
		b.mu.Lock()
		b.run, b.note = nil, "The browser had ended; its pages are gone."
		b.mu.Unlock()
		r.close()
		if errors.Is(why, sandbox.ErrGone) {
			return nil, why
		}
	}
	if err := b.Wait(ctx); err != nil {
		return nil, err
	}
	r, err := open(ctx, b, in)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	closed = b.closed
	if !closed {
		b.run = r
	}
	b.mu.Unlock()
	if closed {
		r.close()
		return nil, source.Errorf(source.Agent, "closed", "the episode has ended")
	}
	return r, nil
}

// running is a browser that lives.
type running struct {
	browser   *Browser
	proc      engine
	box       sandbox.Sandbox // nil elsewhere
	life      context.Context // ends with the browser
	stop      context.CancelFunc
	root      context.Context // of chromedp; the tabs' contexts come from it
	session   cdp.Session     // the browser's own
	gate      *gate
	context   cdp.BrowserContextID // of the episode in a browser that is not its own; else ""
	product   string
	tabs      tabs
	downloads downloads

	once   sync.Mutex // guards script
	script string     // runs before each page

	mu     sync.Mutex // guards closed
	closed bool
	work   sync.WaitGroup // what events have begun
}

// goes does what an event asks for, unless the browser is being closed.
func (r *running) goes(work func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.work.Go(work)
	}
}

// attached is chromedp's allocator of a browser that runs already.
type attached struct{ *chromedp.Browser }

// Allocate implements chromedp.Allocator.
func (a attached) Allocate(context.Context, ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return a.Browser, nil
}

// Wait implements chromedp.Allocator.
func (attached) Wait() {}

// Attaches implements chromedp.Attacher.
func (attached) Attaches() bool { return true }

const startTime = 30 * time.Second

// open starts a browser and sets its gate up before there is a page.
func open(ctx context.Context, b *Browser, in Opener) (_ *running, err error) {
	proc, box, err := b.start(ctx, in)
	if err != nil {
		return nil, err
	}
	r := &running{browser: b, proc: proc, box: box}
	r.downloads.running = r
	r.life, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = r.reason(err)
			r.close()
		}
	}()
	if e, ok := proc.(*rented); ok && e.remote.Tab != nil {
		fox(r, e.remote.Tab)
		return r, nil
	}
	quiet := chromedp.WithBrowserLogf(func(string, ...any) {})
	own, err := chromedp.NewBrowserTransport(r.life, newWire(proc.pipes()), quiet)
	if err != nil {
		return nil, err
	}
	r.root, _ = chromedp.NewContext(r.life, func(c *chromedp.Context) { c.Allocator, c.Browser = attached{own}, own })
	r.session = own
	r.gate = newGate(&b.cfg, own, &b.tally)
	if err := chromedp.ListenBrowser(r.root, r.event); err != nil {
		return nil, err
	}
	slow := source.Errorf(source.Outage, source.Unavailable, "the browser did not start within %s", startTime)
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, slow)
	defer cancel()
	version, err := cdp.Call(ctx, own, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	r.product = version.Product
	if err := r.gate.enable(ctx); err != nil {
		return nil, err
	}
	if err := r.apart(ctx); err != nil {
		return nil, err
	}
	if err := r.downloads.keep(ctx); err != nil {
		return nil, err
	}
	_, err = cdp.Call(ctx, own, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: new(true), Filter: target.Filter{{Type: "page"}},
	})
	return r, err
}

// lives says whether the browser has not ended.
func (r *running) lives() bool {
	select {
	case <-r.proc.over():
		return false
	default:
		return r.life.Err() == nil
	}
}

// reason is why a command failed: the browser's own end, where that is it.
func (r *running) reason(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	select {
	case <-r.proc.over():
		return r.proc.why()
	case <-time.After(200 * time.Millisecond): // its last words may be on the way
		return err
	}
}

// close ends the browser and what belongs to it.
func (r *running) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	_ = r.proc.kill()
	r.work.Wait()
}

// event takes an event of the browser. It must not wait.
func (r *running) event(e any) {
	switch e := e.(type) {
	case *fetch.EventRequestPaused:
		if answer := r.gate.paused(r.life, e); answer != nil {
			r.goes(answer)
		}
	case *target.EventAttachedToTarget:
		r.attached(e)
	case *target.EventDetachedFromTarget:
		r.detached(e.SessionID)
	case *browser.EventDownloadWillBegin:
		r.downloads.begin(e)
	case *browser.EventDownloadProgress:
		r.downloads.progress(e)
	}
}
