package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/web/guard"
)

// wire carries the HTTP of a connection: through the URL guard, with the server's headers, and with patience for one that has too
// much to do. Messages are read as those of a process are.
type wire struct {
	server *server
	fail   func(error) // gets why nothing more can be read
}

// transport is the library's, over the wire.
func (w *wire) transport() sdk.Transport {
	client := &http.Client{Transport: w, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Host != via[0].URL.Host { // the headers are meant for the server alone
			return fmt.Errorf("it redirects to another host, %s", req.URL.Host)
		}
		return nil
	}}
	if w.server.cfg.Transport == "sse" {
		return &sdk.SSEClientTransport{Endpoint: w.server.cfg.URL, HTTPClient: client}
	}
	t := &sdk.StreamableClientTransport{Endpoint: w.server.cfg.URL, HTTPClient: client}
	if w.server.oauth != nil { // a nil one would make an interface that is not nil
		t.OAuthHandler = w.server.oauth
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for _, name := range sortedKeys(w.server.headers) {
		req.Header.Set(name, w.server.headers[name])
	}
	for {
		resp, err := w.server.transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		wait, busy := tooBusy(resp)
		if !busy || req.Body != nil && req.GetBody == nil {
			if isRefusal(resp.StatusCode) && w.server.oauth == nil {
				resp.Body.Close()
				return nil, &deniedError{resp.StatusCode}
			}
			resp.Body = w.mended(resp)
			return resp, nil
		}
		resp.Body.Close()
		select {
		case <-time.After(wait):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// longestWait bounds what a server may ask for; the call's own deadline ends it sooner.
const longestWait = time.Minute

// tooBusy says how long a server wants to be left alone, if it says so.
func tooBusy(resp *http.Response) (time.Duration, bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0, false
	}
	return min(time.Duration(seconds)*time.Second, longestWait), true
}

func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// deniedError is a refusal of the server: a matter for who runs this.
type deniedError struct{ status int }

func (d *deniedError) Error() string {
	return fmt.Sprintf("the server answers with status %d", d.status)
}

func isDenied(err error) bool {
	_, ok := errors.AsType[*deniedError](err)
	return ok
}

// halting ends the run: no episode can use the server.
type halting struct{ *registry.Failure }

func (h halting) Unwrap() error { return h.Failure }
func (halting) Halt() bool      { return true }

// denied is the failure of a server that refuses our credentials.
func (s *server) denied(err error) error {
	return halting{&registry.Failure{
		Class: "mcp_denied", Status: episode.CallUnavailable, Broken: true,
		Message: fmt.Sprintf("mcp server %s: %s: look at header_env and oauth", s.name, err),
	}}
}

var errLarge = &tooLarge{fmt.Errorf("it sent a message of more than %d bytes", maxLine)}

// mended is a body whose messages were mended, and are not too long.
func (w *wire) mended(resp *http.Response) io.ReadCloser {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxLine+1))
		resp.Body.Close()
		if err == nil && len(data) > maxLine {
			err = errLarge
			w.fail(err)
		}
		if err != nil {
			return io.NopCloser(failing{err})
		}
		resp.ContentLength = -1
		return io.NopCloser(bytes.NewReader(mend(data)))
	case "text/event-stream":
		return &events{from: bufio.NewReaderSize(resp.Body, 16<<10), closer: resp.Body, fail: w.fail}
	}
	return struct { // an error, in words
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxLine), resp.Body}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// events mends the messages of a stream of events, which stand in a line each.
type events struct {
	from   *bufio.Reader
	closer io.Closer
	fail   func(error)
	rest   []byte
	err    error
}

var dataField = []byte("data:")

func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 && e.err == nil {
		var line []byte
		line, e.err = e.line()
		if value, ok := bytes.CutPrefix(line, dataField); ok {
			line = append(append([]byte("data: "), mend(bytes.TrimSpace(value))...), '\n')
		}
		e.rest = line
	}
	n := copy(p, e.rest)
	if e.rest = e.rest[n:]; n > 0 {
		return n, nil
	}
	return 0, e.err
}

func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			e.fail(errLarge)
			return nil, errLarge
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (e *events) Close() error { return e.closer.Close() }

// open prepares what the connections of a server with a URL share.
func (s *server) open(opts Options) error {
	u, err := url.Parse(s.cfg.URL)
	if err != nil {
		return err
	}
	// Who declares a host means it, wherever it is: localhost, and names of this machine's search domains.
	config := guard.Config{Private: []string{u.Hostname()}, Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		config.Ports = []int{port}
	}
	g, err := guard.New(config)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if _, err := g.Follow(&url.URL{}, s.cfg.URL); err != nil {
		return err
	}
	s.transport, s.breaker = g.Transport().Patient(), &breaker{now: opts.Now}
	s.headers = map[string]string{}
	var errs []error
	value := func(name string) string {
		value, ok := opts.Environ(name)
		if !ok || value == "" {
			errs = append(errs, fmt.Errorf("the environment has no %s", name))
		}
		return value
	}
	for _, name := range sortedKeys(s.cfg.HeaderEnv) {
		s.headers[name] = value(s.cfg.HeaderEnv[name])
	}
	if o := s.cfg.OAuth; o != nil {
		id, secret := value(o.ClientIDEnv), value(o.ClientSecretEnv)
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
		handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: &oauthex.ClientCredentials{
				ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret},
			},
			HTTPClient: &http.Client{Transport: s.transport, Timeout: time.Minute},
		})
		if err != nil {
			return err
		}
		s.oauth = &oneFlight{handler: handler}
	}
	return errors.Join(errs...)
}

// oneFlight lets one connection at a time get a token, which all use.
type oneFlight struct {
	mu      sync.Mutex // guards handler, which is not safe for concurrent use
	handler auth.OAuthHandler
}

// TokenSource implements auth.OAuthHandler.
func (o *oneFlight) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handler.TokenSource(ctx)
}

// Authorize implements auth.OAuthHandler.
func (o *oneFlight) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.handler.Authorize(ctx, req, resp); err != nil {
		return fmt.Errorf("%w: %w", &deniedError{resp.StatusCode}, err)
	}
	return nil
}
