package browser

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	cdpio "github.com/chromedp/cdproto/io"
	"github.com/chromedp/cdproto/network"

	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// Limits of a response that this program has in its hands, in bytes.
const (
	maxBody   = 64 << 20
	maxHeader = 64 << 10
)

// request is what the browser asks, without what is random in it.
func request(ctx context.Context, e *fetch.EventRequestPaused, files *given) (*http.Request, error) {
	var body []byte
	for _, part := range e.Request.PostDataEntries {
		content := []byte(part.Bytes)
		if len(content) == 0 { // a file
			var err error
			if content, err = files.content(ctx, body); err != nil {
				return nil, err
			}
		}
		body = append(body, content...)
	}
	header := http.Header{}
	for name, value := range e.Request.Headers {
		header.Set(name, fmt.Sprint(value))
	}
	if kind, params, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil && params["boundary"] != "" {
		body = bytes.ReplaceAll(body, []byte(params["boundary"]), []byte(boundary))
		header.Set("Content-Type", kind+"; boundary="+boundary)
	}
	req, err := http.NewRequestWithContext(ctx, e.Request.Method, e.Request.URL, bytes.NewReader(body))
	if err != nil {
		return nil, source.Errorf(source.Agent, source.BlockedURL, "the address cannot be read")
	}
	req.Header = header
	return req, nil
}

// boundary stands in place of the random one that the browser puts between the parts of a form.
const boundary = "----WebKitFormBoundary0000000000000000"

// unsent headers say how a body travelled, and not what it is.
var unsent = []string{"Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer"}

// fulfil answers a request.
func (g *gate) fulfil(ctx context.Context, e *fetch.EventRequestPaused, resp *http.Response) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil && len(body) == 0 {
		g.refuse(ctx, e, err)
		return
	}
	answer := fetch.FulfillRequestParams{RequestID: e.RequestID, ResponseCode: int64(resp.StatusCode), Body: body}
	size := 0
	for _, name := range sortedNames(resp.Header) {
		for _, value := range resp.Header[name] {
			size += len(name) + len(value)
			answer.ResponseHeaders = append(answer.ResponseHeaders, &fetch.HeaderEntry{Name: name, Value: value})
		}
	}
	if size > maxHeader {
		g.refuse(ctx, e, source.Errorf(source.Outage, source.TooLarge,
			"%s: headers of more than %d KB", shorten(e.Request.URL), maxHeader>>10))
		return
	}
	g.tally.add(func(c *Counts) { c.Bytes += len(body) })
	if _, err := cdp.Call(ctx, g.session, fetch.FulfillRequest, answer); err != nil {
		g.refuse(ctx, e, source.Errorf(source.Outage, source.Malformed,
			"%s answers in a way that the browser does not take: %v", shorten(e.Request.URL), err))
	}
}

func sortedNames(header http.Header) []string {
	var names []string
	for name := range header {
		if !slices.Contains(unsent, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// chromium is a transport in which the browser itself asks: a server sees a browser, and what it answers is at hand.
type chromium struct {
	gate *gate
	id   fetch.RequestID
}

// Whole implements tape.Whole.
func (c *chromium) Whole() {}

// RoundTrip implements http.RoundTripper.
func (c *chromium) RoundTrip(req *http.Request) (*http.Response, error) {
	g, ctx := c.gate, req.Context()
	came := make(chan *fetch.EventRequestPaused, 1)
	g.mu.Lock()
	g.awaited[c.id] = came
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.awaited, c.id)
	}()
	goOn := fetch.ContinueRequestParams{RequestID: c.id, InterceptResponse: new(true)}
	if _, err := cdp.Call(ctx, g.session, fetch.ContinueRequest, goOn); err != nil {
		return nil, err
	}
	var e *fetch.EventRequestPaused
	select {
	case e = <-came:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.ResponseErrorReason != "" {
		return nil, source.Errorf(source.Outage, source.Unavailable, "%s %s: %s", req.Method, req.URL, e.ResponseErrorReason)
	}
	resp := &http.Response{
		StatusCode: int(e.ResponseStatusCode), Header: http.Header{}, Body: http.NoBody, ContentLength: -1, Request: req,
	}
	for _, h := range e.ResponseHeaders {
		if name := http.CanonicalHeaderKey(h.Name); !slices.Contains(unsent, name) {
			for value := range strings.SplitSeq(h.Value, "\n") { // Chromium joins those of one name
				resp.Header.Add(name, value)
			}
		}
	}
	for _, cookie := range g.cookies(ctx, e.NetworkID, resp.StatusCode) {
		resp.Header.Add("Set-Cookie", cookie)
	}
	if resp.StatusCode/100 == 3 {
		return resp, nil // its body is never read
	}
	taken, err := cdp.Call(ctx, g.session, fetch.TakeResponseBodyAsStream, fetch.TakeResponseBodyAsStreamParams{RequestID: c.id})
	if err != nil {
		return nil, err
	}
	resp.Body = &stream{ctx: ctx, session: g.session, handle: taken.Stream}
	return resp, nil
}

// cookieTime is how long a response waits for its cookies, which the browser tells apart from it. One from its cache has none.
const cookieTime = 200 * time.Millisecond

// maxCookies bounds the responses whose cookies wait for them.
const maxCookies = 1000

// heard takes the cookies of a response. It does not wait.
func (g *gate) heard(e *network.EventResponseReceivedExtraInfo) {
	if g.cfg.View.Mode() != web.Record {
		return
	}
	var cookies []string
	for name, value := range e.Headers {
		if strings.EqualFold(name, "Set-Cookie") {
			cookies = strings.Split(fmt.Sprint(value), "\n")
		}
	}
	select {
	case g.told(e.RequestID) <- cookies:
	default:
	}
}

// told is where the cookies of the responses to a request come, one redirect after the other.
func (g *gate) told(id network.RequestID) chan []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.baked[id] == nil {
		if len(g.baked) >= maxCookies {
			clear(g.baked)
		}
		g.baked[id] = make(chan []string, 20)
	}
	return g.baked[id]
}

func (g *gate) cookies(ctx context.Context, id network.RequestID, status int) (cookies []string) {
	select {
	case cookies = <-g.told(id):
	case <-time.After(cookieTime):
	case <-ctx.Done():
	}
	if status/100 != 3 {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.baked, id)
	}
	return cookies
}

// stream reads a body from the browser.
type stream struct {
	ctx     context.Context
	session cdp.Session
	handle  cdpio.StreamHandle
	rest    []byte
	ended   bool
}

const chunk = 1 << 20

func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 && !s.ended {
		got, err := cdp.Call(s.ctx, s.session, cdpio.Read, cdpio.ReadParams{Handle: s.handle, Size: chunk})
		if err != nil {
			return 0, err
		}
		s.rest, s.ended = got.Data, got.EOF
	}
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) Close() error {
	_, _ = cdp.Call(s.ctx, s.session, cdpio.Close, cdpio.CloseParams{Handle: s.handle})
	return nil
}
