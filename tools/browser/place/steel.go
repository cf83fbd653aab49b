package place

import (
	"context"
	"net/http"
	"net/url"
)

// steel is api.steel.dev, which servers of one's own speak, too. The id of a session is our name for it.
type steel struct{ rental }

var steelKind = kind{
	variable: "STEEL_API_KEY", base: "https://api.steel.dev", most: 1440,
	open: func(p *Place) service {
		return steel{rental{p, "/v1/sessions", map[string]string{"Steel-API-Key": p.key}}}
	},
}

func (s steel) create(ctx context.Context, name string) (session, error) {
	body := s.p.body(map[string]any{
		"timeout": s.p.lifetime().Milliseconds(), "dimensions": map[string]any{"width": width, "height": height},
	}, map[string]any{"sessionId": name})
	var answer struct{ ID, WebsocketURL string }
	return s.make(ctx, body, &answer, func() session {
		return session{id: answer.ID, socket: s.withKey(answer.WebsocketURL)}
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
	return s.end(ctx, http.MethodPost, id, "/release", map[string]any{})
}
