package place

import (
	"context"
	"net/http"
	"net/url"

	"trajgen/tools/web/provider"
)

// steel is api.steel.dev, which servers of one's own speak, too. The id of a session is our name for it.
type steel struct{ p *Place }

var steelKind = kind{
	variable: "STEEL_API_KEY", base: "https://api.steel.dev", most: 1440, open: func(p *Place) service { return steel{p} },
}

const steelPath = "/v1/sessions"

func (s steel) header() map[string]string { return map[string]string{"Steel-API-Key": s.p.key} }

func (s steel) create(ctx context.Context, name string) (session, error) {
	body := s.p.body(map[string]any{
		"timeout": s.p.lifetime().Milliseconds(), "dimensions": map[string]any{"width": width, "height": height},
	}, map[string]any{"sessionId": name})
	var answer struct{ ID, WebsocketURL, SessionViewerURL string }
	return s.p.make(ctx, steelPath, s.header(), body, &answer, func() session {
		return session{id: answer.ID, socket: s.withKey(answer.WebsocketURL), live: answer.SessionViewerURL}
	})
}

// withKey is the address of a web socket with the key, which is not in the answer.
func (s steel) withKey(address string) string {
	u, err := url.Parse(address)
	if err != nil || address == "" || s.p.key == "" {
		return address
	}
	query := u.Query()
	query.Set("apiKey", s.p.key)
	u.RawQuery = query.Encode()
	return u.String()
}

func (steel) find(_ context.Context, name string) ([]string, error) { return []string{name}, nil }

func (s steel) release(ctx context.Context, id string) error {
	return s.p.release(ctx, provider.Request{
		Method: http.MethodPost, Path: under(steelPath, id) + "/release", Header: s.header(), JSON: map[string]any{},
	})
}
