package place

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// endpoint is any browser that speaks the Chrome DevTools Protocol. Nothing is made and nothing released there.
type endpoint struct{ p *Place }

var cdpKind = kind{keyless: true, socket: true, open: func(p *Place) service { return endpoint{p} }}

func (e endpoint) create(context.Context, string) (session, error) {
	address := e.p.config.URL
	return session{socket: strings.ReplaceAll(address, keyMark, url.QueryEscape(e.p.key)), shared: sharedSocket(address)}, nil
}

func (endpoint) find(context.Context, string) ([]string, error) { return nil, nil }
func (endpoint) release(context.Context, string) error          { return nil }

// sharedSocket says that all connections to an address lead to one browser. Providers open one for each connection.
func sharedSocket(address string) bool {
	return strings.HasPrefix(address, "http") || strings.Contains(address, "/devtools/browser/")
}

// socket is the address of a browser's web socket. A server that is given instead tells it.
func (p *Place) socket(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", p.client.Errorf(source.Outage, source.Malformed, "the address of the browser is %q", p.client.Excerpt(address))
	}
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return address, nil
	}
	if err := byNumber(ctx, u); err != nil {
		return "", p.client.Errorf(source.Outage, source.Unavailable, "the host of the browser is not found: %s",
			p.client.Excerpt(err.Error()))
	}
	var version struct{ WebSocketDebuggerURL string }
	request := provider.Request{Method: http.MethodGet, Path: u.JoinPath("json/version").String()}
	if err := p.client.Ask(ctx, request, &version); err != nil {
		return "", err
	}
	told, err := url.Parse(version.WebSocketDebuggerURL)
	if err != nil || told.Host == "" || told.Scheme != "ws" && told.Scheme != "wss" {
		return "", p.client.Errorf(source.Outage, source.Malformed, "/json/version tells no webSocketDebuggerUrl but %q",
			p.client.Excerpt(version.WebSocketDebuggerURL))
	}
	return told.String(), nil
}

// byNumber writes a host as its address: Chromium refuses requests to another name than localhost.
func byNumber(ctx context.Context, u *url.URL) error {
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil || u.Scheme != "http" || host == "localhost" {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	address := addresses[0].Unmap().String()
	switch {
	case u.Port() != "":
		u.Host = net.JoinHostPort(address, u.Port())
	case strings.Contains(address, ":"):
		u.Host = "[" + address + "]"
	default:
		u.Host = address
	}
	return nil
}
