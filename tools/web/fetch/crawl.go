package fetch

import (
	"context"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/publicsuffix"

	"trajgen/tools/web/source"
)

// The limits of a crawl; it asks for at most twice as many pages as it may keep, since some are broken or equal to others.
const (
	maxPages   = 50
	maxDepth   = 3
	crawlTime  = 5 * time.Minute
	atOnce     = 4
	maxLinks   = 1000 // of a page
	maxHosts   = 8    // of a site
	maxRefused = 500  // links that robots.txt forbids; a site can make each question dear
)

// Crawl implements source.Crawler: it reads pages of one site, breadth first, in the order of their links. Instructions are not
// for it. When its time is over, it returns what it has. Broken pages are among the pages, and do not count.
func (f *Fetcher) Crawl(ctx context.Context, c source.Crawl) ([]source.Page, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Limit <= 0 || c.Limit > maxPages {
		c.Limit = maxPages
	}
	if c.Depth <= 0 || c.Depth > maxDepth {
		c.Depth = maxDepth
	}
	timed, cancel := context.WithTimeout(ctx, crawlTime)
	defer cancel()
	w := &walk{fetcher: f, crawl: c, requests: 2 * c.Limit}
	w.seen, w.hosts, w.digests = map[string]bool{}, map[string]bool{}, map[string]bool{}
	w.walk(timed)
	if ctx.Err() != nil {
		return w.pages, context.Cause(ctx)
	}
	return w.pages, nil
}

// walk is a crawl in progress. One goroutine decides, in an order that does not depend on which page comes first.
type walk struct {
	fetcher  *Fetcher
	crawl    source.Crawl
	site     string
	requests int             // left
	kept     int             // pages without an error
	refused  int             // links that robots.txt forbids
	seen     map[string]bool // URLs that were asked for, or led to
	hosts    map[string]bool
	digests  map[string]bool
	pages    []source.Page
}

func (w *walk) walk(ctx context.Context) {
	first := w.fetcher.read(ctx, w.crawl.URL, w.fetcher.allow, true)
	if ctx.Err() != nil {
		return
	}
	w.requests--
	if u, err := url.Parse(first.FinalURL); err == nil {
		w.site = siteOf(u)
	}
	level := w.keep(first)
	for depth := 1; depth <= w.crawl.Depth && len(level) > 0; depth++ {
		var next []string
		for {
			var batch []string
			for len(level) > 0 && len(batch) < min(atOnce, w.crawl.Limit-w.kept, w.requests) && ctx.Err() == nil {
				if u := w.choose(ctx, level[0]); u != "" {
					batch = append(batch, u)
				}
				level = level[1:]
			}
			if len(batch) == 0 {
				break
			}
			pages := make([]source.Page, len(batch))
			w.fetcher.each(len(batch), func(i int) { pages[i] = w.fetcher.read(ctx, batch[i], w.allow, true) })
			if ctx.Err() != nil {
				return
			}
			w.requests -= len(batch)
			for _, page := range pages {
				if page.Error == nil || page.Error.Class != source.Policy {
					next = append(next, w.keep(page)...)
				}
			}
		}
		level = next
	}
}

// choose returns the URL of a link that is to be read, or "".
func (w *walk) choose(ctx context.Context, link string) string {
	u, err := w.fetcher.config.Guard.Check(link)
	if err != nil {
		return ""
	}
	u.Fragment, u.RawFragment = "", ""
	if w.seen[u.String()] || siteOf(u) != w.site || !w.crawl.Wants(u.Path) || !w.hosts[u.Host] && len(w.hosts) >= maxHosts {
		return ""
	}
	w.seen[u.String()], w.hosts[u.Host] = true, true
	if w.refused >= maxRefused {
		return ""
	}
	if w.fetcher.allow(ctx, u) != nil {
		w.refused++
		return ""
	}
	return u.String()
}

// allow judges where a link redirects to.
func (w *walk) allow(ctx context.Context, u *url.URL) error {
	if siteOf(u) != w.site {
		return source.Errorf(source.Agent, source.Policy, "the link leads to another site")
	}
	return w.fetcher.allow(ctx, u)
}

// keep adds a page that the crawl does not have yet. It returns its links.
func (w *walk) keep(page source.Page) (links []string) {
	if page.Error != nil {
		w.pages = append(w.pages, page)
		return nil
	}
	if page.FinalURL != page.URL && w.seen[page.FinalURL] || w.digests[page.Digest] {
		return nil
	}
	w.seen[page.FinalURL], w.digests[page.Digest] = true, true
	w.pages = append(w.pages, page)
	w.kept++
	for _, link := range page.Links[:min(len(page.Links), maxLinks)] {
		links = append(links, link.URL)
	}
	return links
}

// siteOf is what a crawl stays within: a domain with its subdomains, or one host.
func siteOf(u *url.URL) string {
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return u.Host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err == nil {
		return site
	}
	return u.Host
}
