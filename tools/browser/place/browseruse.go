package place

import (
	"context"
	"net/http"

	"trajgen/tools/web/provider"
)

// browserUse is api.browser-use.com in its version 3. It takes no name of ours: a session whose id is lost ends with its time.
type browserUse struct{ p *Place }

var browserUseKind = kind{
	variable: "BROWSER_USE_API_KEY", base: "https://api.browser-use.com", most: 240,
	open: func(p *Place) service { return browserUse{p} },
}

const browserUsePath = "/api/v3/browsers"

func (b browserUse) header() map[string]string {
	return map[string]string{"X-Browser-Use-API-Key": b.p.key}
}

func (b browserUse) create(ctx context.Context, _ string) (session, error) {
	body := b.p.body(map[string]any{
		"timeout": int(b.p.lifetime().Minutes()), "browserScreenWidth": width, "browserScreenHeight": height,
	}, nil)
	var answer struct{ ID, CDPURL, LiveURL string }
	return b.p.make(ctx, browserUsePath, b.header(), body, &answer, func() session {
		return session{id: answer.ID, socket: answer.CDPURL, live: answer.LiveURL}
	})
}

func (browserUse) find(context.Context, string) ([]string, error) { return nil, nil }

func (b browserUse) release(ctx context.Context, id string) error {
	return b.p.release(ctx, provider.Request{
		Method: http.MethodPatch, Path: under(browserUsePath, id), Header: b.header(), JSON: map[string]any{"action": "stop"},
	})
}
