package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"trajgen/tools/web/source"
)

const (
	connectLimit = 10 * time.Second // to look up a name and to connect
	headersLimit = 20 * time.Second // from a request to the headers of its answer
	maxHeaders   = 64 << 10
	mostTried    = 4 // addresses of a name
)

// Transport carries HTTP to where its Guard allows. It does not decompress.
type Transport struct {
	guard *Guard
	http  *http.Transport
}

// Transport opens connections for many goroutines. CloseIdleConnections ends those that are kept.
func (g *Guard) Transport() *Transport {
	return &Transport{guard: g, http: &http.Transport{
		Proxy:                  nil, // one of the environment would dial for us, past the guard
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    connectLimit,
		ResponseHeaderTimeout:  headersLimit,
		MaxResponseHeaderBytes: maxHeaders,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}}
}

// Patient waits for the headers of an answer as long as the request's context lasts: a server may work before it answers.
func (t *Transport) Patient() *Transport {
	t.http.ResponseHeaderTimeout = 0
	return t
}

// RoundTrip implements http.RoundTripper. A refusal is a *source.Error, also within another error.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := t.guard.reach(req.URL); err != nil {
		closeBody(req)
		return nil, err
	}
	return t.http.RoundTrip(req)
}

// CloseIdleConnections closes connections that no request uses.
func (t *Transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

// dial looks a name up once, judges every address of the answer, and connects to one of those.
func (g *Guard) dial(ctx context.Context, network, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	name, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	host, addr, err := readHost(name)
	if err != nil {
		return nil, refuse(name, "%s", err)
	}
	if err := g.judgeHost(host, addr); err != nil {
		return nil, err
	}
	addrs := []netip.Addr{addr}
	if !addr.IsValid() {
		if addrs, err = g.lookup(ctx, host); err != nil {
			return nil, err
		}
	}
	addrs = addrs[:min(len(addrs), mostTried)]
	// The last word, about the address that is really dialled.
	judge := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.judge(host, at.Addr())
	}
	dialer := net.Dialer{Timeout: connectLimit / time.Duration(len(addrs)), ControlContext: judge}
	var errs []error
	for _, addr := range addrs {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// lookup returns the addresses of a name, all of them judged.
func (g *Guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs, err := g.config.Lookup(ctx, host)
	if problem, ok := errors.AsType[*net.DNSError](err); ok && problem.IsNotFound || err == nil && len(addrs) == 0 {
		return nil, source.Errorf(source.Agent, source.NoHost, "there is no host %s: look for the right name", host)
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for _, addr := range addrs {
		if err := g.judge(host, addr); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// Offline returns a transport that reaches nothing: each request fails with an error of that blame and class.
func Offline(blame source.Blame, class string) http.RoundTripper { return offline{blame, class} }

type offline struct {
	blame source.Blame
	class string
}

func (o offline) RoundTrip(req *http.Request) (*http.Response, error) {
	closeBody(req)
	return nil, source.Errorf(o.blame, o.class, "%s is not reached: this run has no live web", shown(req.URL.Redacted()))
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
