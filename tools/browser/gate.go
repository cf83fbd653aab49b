package browser

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"

	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// gate judges each request of a browser before it leaves, and answers those that do not go to the network. Chromium shows it
// documents, frames, popups, workers, prefetches, beacons and what redirects lead to; it fails closed.
type gate struct {
	cfg     *Config
	session cdp.Session // the browser's own
	tally   *tally

	mu       sync.Mutex                                         // guards the rest
	awaited  map[fetch.RequestID]chan *fetch.EventRequestPaused // responses that are recorded, by the request
	baked    map[network.RequestID]chan []string                // cookies of responses that are recorded
	own      map[network.RequestID]bool                         // requests that the browser makes by itself
	refusals map[string]error                                   // why documents did not come, by URL
}

func newGate(cfg *Config, session cdp.Session, t *tally) *gate {
	return &gate{
		cfg: cfg, session: session, tally: t, awaited: map[fetch.RequestID]chan *fetch.EventRequestPaused{},
		baked: map[network.RequestID]chan []string{}, own: map[network.RequestID]bool{}, refusals: map[string]error{},
	}
}

const (
	maxRefusals = 100
	maxOwn      = 1000 // that go on at once and are counted
)

// enable makes the browser ask.
func (g *gate) enable(ctx context.Context) error {
	_, err := cdp.Call(ctx, g.session, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*"}}})
	return err
}

// paused takes a request that waits. It returns at once.
func (g *gate) paused(ctx context.Context, e *fetch.EventRequestPaused) (answer func()) {
	if e.ResponseStatusCode != 0 || e.ResponseErrorReason != "" {
		g.mu.Lock()
		waiting := g.awaited[e.RequestID]
		delete(g.awaited, e.RequestID)
		g.mu.Unlock()
		if waiting != nil {
			waiting <- e
			return nil
		}
		return func() { g.proceed(ctx, e) }
	}
	return func() { g.answer(ctx, e) }
}

func (g *gate) answer(ctx context.Context, e *fetch.EventRequestPaused) {
	g.tally.add(func(c *Counts) {
		if c.Requests++; e.Request.Headers["Service-Worker"] != nil { // it is the worker's script
			c.Unrecordable++
		}
	})
	u, err := url.Parse(e.Request.URL)
	if err != nil {
		g.refuse(ctx, e, source.Errorf(source.Agent, source.BlockedURL, "the address cannot be read"))
		return
	}
	if g.cfg.Place == nil && loopback(u) {
		g.proceed(ctx, e)
		return
	}
	if site := g.cfg.site(u.Hostname()); site != nil {
		g.by(ctx, e, site)
		return
	}
	// A form may lead the agent to put a secret into an address. What scripts of a page send is that page's own.
	check := g.cfg.View.Follow
	if e.ResourceType == network.ResourceTypeDocument {
		check = g.cfg.View.Check
	}
	if err := check(e.Request.URL); err != nil {
		g.refuse(ctx, e, err)
		return
	}
	switch g.cfg.View.Mode() {
	case web.Live:
		g.proceed(ctx, e)
	case web.Corpus:
		g.open(ctx, e)
	default:
		g.by(ctx, e, g.cfg.View.Through("browser", Version, &chromium{g, e.RequestID}))
	}
}

// loopback says whether a URL leads to the sandbox itself.
func loopback(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// proceed lets the browser ask by itself.
func (g *gate) proceed(ctx context.Context, e *fetch.EventRequestPaused) {
	g.mu.Lock()
	if len(g.own) >= maxOwn {
		clear(g.own)
	}
	g.own[e.NetworkID] = true
	g.mu.Unlock()
	_, _ = cdp.Call(ctx, g.session, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
}

// came counts the bytes of a response that the browser itself got.
func (g *gate) came(e *network.EventLoadingFinished) {
	g.mu.Lock()
	own := g.own[e.RequestID]
	delete(g.own, e.RequestID)
	g.mu.Unlock()
	if own {
		g.tally.add(func(c *Counts) { c.Bytes += int(e.EncodedDataLength) })
	}
}

// refuse fails a request, and remembers why where that is a page's document.
func (g *gate) refuse(ctx context.Context, e *fetch.EventRequestPaused, why error) {
	failed, _ := errors.AsType[*source.Error](why)
	reason := network.ErrorReasonBlockedByClient
	switch {
	case failed != nil && failed.Class == source.ReplayMiss:
		g.tally.add(func(c *Counts) { c.Misses++ })
	case failed != nil && failed.Blame == source.Outage:
		reason = network.ErrorReasonFailed
	default:
		g.tally.add(func(c *Counts) { c.Blocked++ })
	}
	if e.ResourceType == network.ResourceTypeDocument {
		g.mu.Lock()
		if len(g.refusals) >= maxRefusals {
			clear(g.refusals)
		}
		g.refusals[e.Request.URL] = why
		g.refusals[""] = why
		g.mu.Unlock()
	}
	_, _ = cdp.Call(ctx, g.session, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: reason})
}

// why is the last reason for which a document did not come; nil without one since the last forget.
func (g *gate) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusals[""]
}

func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.refusals)
}

// by answers with what a transport gets.
func (g *gate) by(ctx context.Context, e *fetch.EventRequestPaused, transport http.RoundTripper) {
	req, err := request(ctx, e, g.cfg.given)
	var resp *http.Response
	if err == nil {
		resp, err = transport.RoundTrip(req)
	}
	if err != nil {
		g.refuse(ctx, e, err)
		return
	}
	g.fulfil(ctx, e, resp)
}
