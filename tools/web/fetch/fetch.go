// Package fetch reads and crawls pages of the web over an HTTP transport that it is given.
package fetch

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"trajgen/tools/web/guard"
	"trajgen/tools/web/source"
)

// Version names these requests in recordings. It changes when a request for the same URL may get another answer.
const Version = "fetch 1"

// Config configures a Fetcher.
type Config struct {
	Transport http.RoundTripper // the guard's, or a recording
	Guard     *guard.Guard
	Extract   Extract
	Recorded  bool             // Transport answers from a recording: nothing waits between requests
	InOrder   bool             // pages are read one after the other: a recording has them in that order
	Timeout   time.Duration    // for a page, without the time that it waits for its turn; 0 is a minute
	Now       func() time.Time // nil is time.Now
}

// Extract completes a page, which has all but title, text, links, date and extractor, from its decoded body. Many goroutines
// call it.
type Extract func(ctx context.Context, page source.Page, body []byte, header http.Header) source.Page

// Fetcher is a source.Reader and a source.Crawler. All episodes of a run share its limits.
type Fetcher struct {
	config Config
	lanes  *lanes
	robots *robots
}

// New makes a Fetcher. It holds nothing that has to be closed.
func New(config Config) *Fetcher {
	if config.Timeout == 0 {
		config.Timeout = time.Minute
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Fetcher{config: config, lanes: newLanes(), robots: newRobots()}
}

// With returns a Fetcher for another transport, such as an episode's own, that shares the limits of this one.
func (f *Fetcher) With(transport http.RoundTripper) *Fetcher {
	config := f.config
	config.Transport = transport
	return &Fetcher{config: config, lanes: f.lanes, robots: newRobots()}
}

// Read implements source.Reader.
func (f *Fetcher) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	pages := make([]source.Page, len(urls))
	f.each(len(urls), func(i int) { pages[i] = f.read(ctx, urls[i], nil, false) })
	if ctx.Err() != nil {
		return pages, context.Cause(ctx)
	}
	return pages, nil
}

// each does n things at once, or in order.
func (f *Fetcher) each(n int, do func(i int)) {
	var work sync.WaitGroup
	defer work.Wait()
	for i := range n {
		if f.config.InOrder {
			do(i)
			continue
		}
		work.Go(func() { do(i) })
	}
}

// File reads a file of any kind, of at most limit bytes. An error is a *source.Error, unless ctx has ended.
func (f *Fetcher) File(ctx context.Context, raw string, limit int64) (page source.Page, data []byte, err error) {
	page.URL = raw
	u, err := f.config.Guard.Check(raw)
	if err == nil {
		err = f.visit(ctx, u, &visit{page: &page, file: limit, use: func(body []byte, _ http.Header) { data = body }})
	}
	switch {
	case ctx.Err() != nil:
		return page, nil, context.Cause(ctx)
	case err != nil:
		page.Error = failure(err)
		return page, nil, page.Error
	}
	return page, data, nil
}

// read reads a page. allow judges each address on the way to it, and may be nil.
func (f *Fetcher) read(ctx context.Context, raw string, allow func(context.Context, *url.URL) error, polite bool) source.Page {
	page := source.Page{URL: raw}
	u, err := f.config.Guard.Check(raw)
	if err == nil {
		err = f.visit(ctx, u, &visit{page: &page, allow: allow, polite: polite, use: func(body []byte, header http.Header) {
			page = f.config.Extract(ctx, page, body, header)
		}})
	}
	if err != nil {
		page.Error = failure(err)
	}
	return page
}
