package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"trajgen/tools/web/fetch"
	"trajgen/tools/web/sites"
	"trajgen/tools/web/source"
)

// The names of requests to sites in recordings, and of questions for their states, with the site and its seed. They change when a
// site may answer the same request in another way.
const (
	sitesVersion = "sites 1"
	stateVersion = "state of sites 1"
)

// Serves reports whether a host, without a port, is one of the sites that the episode's task names.
func (v *View) Serves(host string) bool { return v.sites != nil && v.sites.Serves(host) }

// Sites answers a call's requests to the task's sites in every mode of the web; in a replay the recording alone answers. It has
// no way to other hosts.
func (v *View) Sites(call string) http.RoundTripper { return &siteTransport{v, call} }

type siteTransport struct {
	view *View
	call string
}

// maxForm bounds what is read of the body of a request; a site refuses a shorter one already.
const maxForm = 16 << 20

// RoundTrip implements http.RoundTripper.
func (t *siteTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	v := t.view
	if !v.Serves(req.URL.Hostname()) {
		return nil, source.Errorf(source.Agent, source.NoHost, "there is no site %s", req.URL.Hostname())
	}
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(req.Body, maxForm))
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, fmt.Errorf("read the body of a request: %w", err)
		}
	}
	plain := req.Clone(req.Context())
	body = withoutBoundary(plain.Header, body)
	plain.Body, plain.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		plain.Body, plain.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if sites.Changes(plain) {
		v.changed(plain, body)
	}
	return v.Through(t.call, sitesVersion+" "+v.sites.Named(plain.URL.Hostname()), v.sites).RoundTrip(plain)
}

// withoutBoundary writes a form in parts with a boundary that is always the same: browsers draw one, and a replay would not find
// the request again.
func withoutBoundary(header http.Header, body []byte) []byte {
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	drawn := params["boundary"]
	if err != nil || kind != "multipart/form-data" || len(drawn) < 10 {
		return body
	}
	const fixed = "trajgen-form-boundary"
	header.Set("Content-Type", mime.FormatMediaType(kind, map[string]string{"boundary": fixed}))
	return bytes.ReplaceAll(body, []byte(drawn), []byte(fixed))
}

// changed notes a request that may change a state. The sum of digests does not depend on which of two came first.
func (v *View) changed(req *http.Request, body []byte) {
	text := fmt.Appendf(nil, "%s %s\n", req.Method, req.URL)
	sum := sha256.Sum256(append(text, body...))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.changes++
	v.history += binary.BigEndian.Uint64(sum[:])
}

// State is what one of the task's sites holds, as a JSON object, for a verifier. A recording has it together with which requests
// had come until then, so that a replay never gets the state of an episode that did something else.
func (v *View) State(ctx context.Context, site string) (json.RawMessage, error) {
	if v.sites == nil {
		return nil, v.why
	}
	v.mu.Lock()
	query := fmt.Sprintf("changes=%d&history=%016x", v.changes, v.history)
	v.mu.Unlock()
	asked := &url.URL{Scheme: "http", Host: site + ".test", Path: "/.state", RawQuery: query}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("state of site %q: %w", site, err)
	}
	resp, err := v.Through("", stateVersion+" "+v.sites.Named(site), stateOf{v.sites, site}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// stateOf answers with the state of a site. No request of an agent comes here.
type stateOf struct {
	set  *sites.Set
	site string
}

func (s stateOf) RoundTrip(req *http.Request) (*http.Response, error) {
	state, err := s.set.State(s.site)
	if err != nil {
		return nil, source.Errorf(source.Operator, source.Unavailable, "%v", err)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(state)),
		Body: io.NopCloser(bytes.NewReader(state)), Request: req,
	}, nil
}

// withSites reads pages of the task's sites, and leaves others to rest.
type withSites struct {
	view    *View
	own     *fetch.Fetcher
	reader  source.Reader
	crawler source.Crawler
}

func (w withSites) serves(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && w.view.Serves(u.Hostname())
}

// Read implements source.Reader.
func (w withSites) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	pages := make([]source.Page, len(urls))
	for _, reader := range []struct {
		source.Reader
		sites bool
	}{{w.own, true}, {w.reader, false}} {
		var its []string
		var at []int
		for i, raw := range urls {
			if w.serves(raw) == reader.sites {
				its, at = append(its, raw), append(at, i)
			}
		}
		if len(its) == 0 {
			continue
		}
		read, err := reader.Read(ctx, its)
		if err != nil {
			return nil, err
		}
		for i, page := range read {
			pages[at[i]] = page
		}
	}
	return pages, nil
}

// Crawl implements source.Crawler.
func (w withSites) Crawl(ctx context.Context, c source.Crawl) ([]source.Page, error) {
	if w.serves(c.URL) {
		return w.own.Crawl(ctx, c)
	}
	return w.crawler.Crawl(ctx, c)
}

// byHost sends requests to the task's sites there, and others elsewhere.
type byHost struct {
	view        *View
	sites, rest http.RoundTripper
}

func (t byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.view.Serves(req.URL.Hostname()) {
		return t.sites.RoundTrip(req)
	}
	return t.rest.RoundTrip(req)
}
