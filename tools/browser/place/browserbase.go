package place

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"trajgen/tools/web/provider"
)

// browserbase is api.browserbase.com. The project is that of the key, unless the options have a projectId.
type browserbase struct{ rental }

var browserbaseKind = kind{
	variable: "BROWSERBASE_API_KEY", base: "https://api.browserbase.com", most: 360,
	open: func(p *Place) service {
		return browserbase{rental{p, "/v1/sessions", map[string]string{"X-BB-API-Key": p.key}}}
	},
}

const mark = "trajgen" // of a session's metadata: our name for it

func (b browserbase) create(ctx context.Context, name string) (session, error) {
	metadata := map[string]any{mark: name}
	if own, ok := b.p.config.Options["userMetadata"].(map[string]any); ok {
		for key, value := range own {
			if key != mark {
				metadata[key] = value
			}
		}
	}
	body := b.p.body(map[string]any{
		"timeout":         int(b.p.lifetime().Seconds()),
		"browserSettings": map[string]any{"viewport": map[string]any{"width": width, "height": height}},
	}, map[string]any{"userMetadata": metadata})
	var answer struct{ ID, ConnectURL string }
	return b.make(ctx, body, &answer, func() session {
		return session{id: answer.ID, socket: answer.ConnectURL}
	})
}

// find asks for the sessions with our name in their metadata.
func (b browserbase) find(ctx context.Context, name string) ([]string, error) {
	var found []struct{ ID, Status string }
	query := url.Values{"q": {fmt.Sprintf("user_metadata['%s']:'%s'", mark, name)}}
	request := provider.Request{Method: http.MethodGet, Path: b.path, Query: query, Header: b.header}
	if err := b.p.client.Ask(ctx, request, &found); err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range found {
		if s.Status == "PENDING" || s.Status == "RUNNING" {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

func (b browserbase) release(ctx context.Context, id string) error {
	body := map[string]any{"status": "REQUEST_RELEASE"}
	if project, ok := b.p.config.Options["projectId"]; ok {
		body["projectId"] = project
	}
	return b.end(ctx, http.MethodPost, id, "", body)
}
