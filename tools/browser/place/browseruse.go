package place

import (
	"context"
	"net/http"
)

// browserUse is api.browser-use.com in its version 3. It takes no name of ours: a session whose id is lost ends with its time.
type browserUse struct{ rental }

var browserUseKind = kind{
	variable: "BROWSER_USE_API_KEY", base: "https://api.browser-use.com", most: 240,
	open: func(p *Place) service {
		return browserUse{rental{p, "/api/v3/browsers", map[string]string{"X-Browser-Use-API-Key": p.key}}}
	},
}

func (b browserUse) create(ctx context.Context, _ string) (session, error) {
	body := b.p.body(map[string]any{
		"timeout": int(b.p.lifetime().Minutes()), "browserScreenWidth": width, "browserScreenHeight": height,
	}, nil)
	var answer struct{ ID, CDPURL string }
	return b.make(ctx, body, &answer, func() session {
		return session{id: answer.ID, socket: answer.CDPURL}
	})
}

func (b browserUse) release(ctx context.Context, id string) error {
	return b.end(ctx, http.MethodPatch, id, "", map[string]any{"action": "stop"})
}
