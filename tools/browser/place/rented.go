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

// rental is what the services that rent browsers have in common.
type rental struct {
	p      *Place
	path   string // of all sessions
	header map[string]string
}

// make asks for a session, and checks that the answer has one.
func (r rental) make(ctx context.Context, body, answer any, made func() session) (session, error) {
	request := provider.Request{Method: http.MethodPost, Path: r.path, Header: r.header, JSON: body, Costly: true}
	if err := r.p.client.Ask(ctx, request, answer); err != nil {
		return session{}, err
	}
	s := made()
	if s.id == "" || s.socket == "" {
		return session{}, r.p.client.Errorf(source.Outage, source.Malformed, "its answer lacks the id of a browser, or the address")
	}
	return s, nil
}

// list asks for the list of sessions, which every such service has.
func (r rental) list(ctx context.Context) error {
	_, err := r.p.client.Send(ctx, provider.Request{Method: http.MethodGet, Path: r.path, Header: r.header})
	return err
}

// ended are the errors about a session that has ended already.
var ended = []string{"http_404", "http_409", "http_410"}

// find finds nothing, where a service takes no name of ours.
func (rental) find(context.Context, string) ([]string, error) { return nil, nil }

// end ends a session.
func (r rental) end(ctx context.Context, method, id, more string, body any) error {
	path := r.path + "/" + url.PathEscape(id) + more
	_, err := r.p.client.Send(ctx, provider.Request{Method: method, Path: path, Header: r.header, JSON: body})
	if failed, ok := errors.AsType[*source.Error](err); ok && slices.Contains(ended, failed.Class) {
		return nil
	}
	return err
}
