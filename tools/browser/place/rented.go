package place

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

const width, height = 1280, 720 // of a window, as in sandboxes

// lifetime is how long a session may live if its end is lost: it is billed that long.
func (p *Place) lifetime() time.Duration {
	minutes := p.config.Minutes
	if minutes == 0 {
		minutes = min(defaultMinutes, p.kind.most)
	}
	return time.Duration(minutes) * time.Minute
}

// body is what makes a session: our fields, unless the options have them, and those that must be ours.
func (p *Place) body(fields, must map[string]any) map[string]any {
	all := map[string]any{}
	for _, some := range []map[string]any{fields, p.config.Options, must} {
		maps.Copy(all, some)
	}
	return all
}

// make asks for a session, and checks that the answer has one.
func (p *Place) make(
	ctx context.Context, path string, header map[string]string, body, answer any, made func() session,
) (session, error) {
	request := provider.Request{Method: http.MethodPost, Path: path, Header: header, JSON: body, Costly: true}
	if err := p.client.Ask(ctx, request, answer); err != nil {
		return session{}, err
	}
	s := made()
	if s.id == "" || s.socket == "" {
		return session{}, p.client.Errorf(source.Outage, source.Malformed, "its answer lacks the id of a browser, or the address")
	}
	return s, nil
}

// ended are the errors about a session that has ended already.
var ended = []string{"http_404", "http_409", "http_410"}

// release ends a session.
func (p *Place) release(ctx context.Context, r provider.Request) error {
	_, err := p.client.Send(ctx, r)
	if failed, ok := errors.AsType[*source.Error](err); ok && slices.Contains(ended, failed.Class) {
		return nil
	}
	return err
}

// under is the path of a session.
func under(path, id string) string { return path + "/" + url.PathEscape(id) }
