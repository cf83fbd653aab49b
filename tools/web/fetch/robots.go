package fetch

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"sync"

	"github.com/temoto/robotstxt"

	"trajgen/tools/web/source"
)

const (
	robotName = "trajgen"
	maxRules  = 5000 // lines of a robots.txt
	maxSites  = 16   // that are remembered
)

// robots are the rules of sites.
type robots struct {
	mu    sync.Mutex // guards sites
	sites map[string]*site
}

type site struct {
	asking chan struct{} // holds a token while it is asked, and guards group
	group  *robotstxt.Group
}

func newRobots() *robots { return &robots{sites: map[string]*site{}} }

// allow asks the robots.txt of a URL's site.
func (f *Fetcher) allow(ctx context.Context, u *url.URL) error {
	s := f.robots.of(u.Scheme + "://" + u.Host)
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.group == nil {
		group, err := f.rules(ctx, u.ResolveReference(&url.URL{Path: "/robots.txt"}))
		if err != nil {
			return err
		}
		s.group = group
	}
	f.lanes.slow(u.Host, s.group.CrawlDelay)
	if !s.group.Test(u.RequestURI()) {
		return source.Errorf(source.Agent, source.Policy, "the site's robots.txt does not allow programs to read %s", u.Path)
	}
	return nil
}

func (r *robots) of(name string) *site {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sites[name] == nil {
		if len(r.sites) >= maxSites {
			clear(r.sites)
		}
		r.sites[name] = &site{asking: make(chan struct{}, 1)}
	}
	return r.sites[name]
}

// rules reads a robots.txt. A site without one allows everything; one that does not answer, nothing for now.
func (f *Fetcher) rules(ctx context.Context, u *url.URL) (*robotstxt.Group, error) {
	var text []byte
	var page source.Page
	err := f.visit(ctx, u, &visit{page: &page, use: func(body []byte, _ http.Header) { text = ruleLines(body) }})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if e := failure(err); e.Blame != source.Agent {
			return nil, source.Errorf(e.Blame, e.Class, "the site's robots.txt, which says what may be read, cannot be had: %v", e)
		}
	}
	data, err := robotstxt.FromBytes(text)
	if err != nil {
		return nil, source.Errorf(source.Agent, source.Policy, "the site's robots.txt cannot be understood, so nothing is read there")
	}
	return data.FindGroup(robotName), nil
}

var (
	ruleLine  = regexp.MustCompile(`(?im)^[ \t]*((user-?agent|allow|disallow)[ \t]*:[^\n]*|crawl-?delay[ \t]*:[ \t]*[0-9]{1,6}(\.[0-9]{1,6})?[ \t]*(#[^\n]*)?)$`)
	agentLine = regexp.MustCompile(`(?i)^[ \t]*user-?agent`)
)

// ruleLines are the lines of a robots.txt that matter, as the library takes a wrong line, or a page of HTML, as a reason to read
// none.
func ruleLines(body []byte) []byte {
	body = bytes.ReplaceAll(bytes.TrimPrefix(body, []byte("\ufeff")), []byte("\r"), []byte("\n"))
	lines := ruleLine.FindAll(body, maxRules)
	for len(lines) > 0 && !agentLine.Match(lines[0]) {
		lines = lines[1:]
	}
	return bytes.Join(lines, []byte("\n"))
}
