package place

import (
	"context"
	"net/http"
)

// camofox is a server of one's own with a Firefox: https://github.com/jo-inc/camofox-browser. A session is a user of ours there.
type camofox struct{ rental }

var camofoxKind = kind{
	variable: "CAMOFOX_ACCESS_KEY", keyless: true, base: "http://127.0.0.1:9377",
	open: func(p *Place) service { return camofox{rental{p, "/sessions", bearer(p.key)}} },
}

func (c camofox) create(ctx context.Context, name string) (session, error) {
	tab := &Tab{client: c.p.client, key: c.p.key, user: name}
	if err := tab.open(ctx); err != nil {
		return session{}, err
	}
	return session{id: name, tab: tab}, nil
}

func (camofox) find(_ context.Context, name string) ([]string, error) { return []string{name}, nil }

func (c camofox) release(ctx context.Context, id string) error {
	return c.end(ctx, http.MethodDelete, id, "", nil)
}

func bearer(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + key}
}
