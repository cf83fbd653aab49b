package place

import (
	"context"
	"net/http"

	"trajgen/tools/web/provider"
)

// firecrawl is api.firecrawl.dev in its version 2. It takes no name of ours: a session whose id is lost ends with its time.
type firecrawl struct{ p *Place }

var firecrawlKind = kind{
	variable: "FIRECRAWL_API_KEY", base: "https://api.firecrawl.dev", most: 60, open: func(p *Place) service { return firecrawl{p} },
}

const firecrawlPath = "/v2/browser"

func (f firecrawl) header() map[string]string {
	return map[string]string{"Authorization": "Bearer " + f.p.key}
}

// create makes a session that may be idle all its life: a model can think for long between two calls.
func (f firecrawl) create(ctx context.Context, _ string) (session, error) {
	seconds := int(f.p.lifetime().Seconds())
	body := f.p.body(map[string]any{"ttl": seconds, "activityTtl": seconds}, nil)
	var answer struct{ ID, CDPURL, LiveViewURL string }
	return f.p.make(ctx, firecrawlPath, f.header(), body, &answer, func() session {
		return session{id: answer.ID, socket: answer.CDPURL, live: answer.LiveViewURL}
	})
}

func (firecrawl) find(context.Context, string) ([]string, error) { return nil, nil }

func (f firecrawl) release(ctx context.Context, id string) error {
	return f.p.release(ctx, provider.Request{Method: http.MethodDelete, Path: under(firecrawlPath, id), Header: f.header()})
}
