package place

import (
	"context"
	"net/http"
)

// firecrawl is api.firecrawl.dev in its version 2. It takes no name of ours: a session whose id is lost ends with its time.
type firecrawl struct{ rental }

var firecrawlKind = kind{
	variable: "FIRECRAWL_API_KEY", base: "https://api.firecrawl.dev", most: 60,
	open: func(p *Place) service { return firecrawl{rental{p, "/v2/browser", bearer(p.key)}} },
}

// create makes a session that may be idle all its life: a model can think for long between two calls.
func (f firecrawl) create(ctx context.Context, _ string) (session, error) {
	seconds := int(f.p.lifetime().Seconds())
	body := f.p.body(map[string]any{"ttl": seconds, "activityTtl": seconds}, nil)
	var answer struct{ ID, CDPURL string }
	return f.make(ctx, body, &answer, func() session {
		return session{id: answer.ID, socket: answer.CDPURL}
	})
}

func (f firecrawl) release(ctx context.Context, id string) error {
	return f.end(ctx, http.MethodDelete, id, "", nil)
}
