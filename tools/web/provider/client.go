package provider

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trajgen/tools/web/source"
)

// Client asks services that neither search nor read: their requests are sent, tried again and judged as those of providers are.
type Client struct{ s *service }

// ClientConfig says whom a Client asks.
type ClientConfig struct {
	Name, BaseURL string
	Key           string // never shown in errors
	Variable      string // of the environment, with the key; "" where none is needed
	Auth          string // the header that the key stands in, with what is before it; "" where requests have it themselves
	Transport     http.RoundTripper
	Now           func() time.Time
	Hasty         bool  // leaves out the pauses between tries, as nothing but a recording answers
	Most          int64 // bytes of an answer; 0 is 10 MB
	// Judge is that of requests without one of their own.
	Judge func(status int, body []byte) *source.Error
}

// NewClient makes a Client. Nothing is asked.
func NewClient(c ClientConfig) *Client {
	k := kind{variable: c.Variable, keyless: c.Variable == ""}
	if c.Key != "" {
		k.auth = c.Auth
	}
	return &Client{&service{
		name: c.Name, kind: k, base: strings.TrimRight(c.BaseURL, "/"), key: c.Key,
		now: c.Now, hasty: c.Hasty, most: c.Most, judge: c.Judge, client: through(c.Transport),
	}}
}

// through is a client that follows no redirect: the key is for the base URL alone.
func through(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// Request is one for a service.
type Request struct {
	Method string
	Path   string // behind the base URL; or a whole URL
	Query  url.Values
	Header map[string]string
	JSON   any // the body; nil for none
	// Costly says that it begins or does something: it is tried again only where it did not arrive, or was refused for the moment.
	Costly bool
	// Judge may know better what an answer means. It returns nil where it does not.
	Judge func(status int, body []byte) *source.Error
}

// Ask sends a request until it is answered, and decodes the answer. An error is a *source.Error unless ctx has ended.
func (c *Client) Ask(ctx context.Context, r Request, answer any) error {
	return c.s.ask(ctx, r.request(), answer)
}

// Send sends a request until it is answered, and returns the body.
func (c *Client) Send(ctx context.Context, r Request) ([]byte, error) {
	return c.s.send(ctx, r.request())
}

// RoundTrip sends the requests of a library that speaks to the service, as costly ones. The body of an answer is whole.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	r := request{method: req.Method, path: req.URL.String(), header: map[string]string{}, costly: true}
	for name := range req.Header {
		r.header[name] = req.Header.Get(name)
	}
	if req.Body != nil {
		defer req.Body.Close()
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.text = string(text)
	}
	body, err := c.s.send(req.Context(), r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

func (r Request) request() request {
	return request{method: r.Method, path: r.Path, query: r.Query, header: r.Header, json: r.JSON, costly: r.Costly, judge: r.Judge}
}

// Errorf makes an Error that names the service.
func (c *Client) Errorf(blame source.Blame, class, format string, args ...any) *source.Error {
	return c.s.fault(blame, class, format, args...)
}

// Excerpt is the beginning of what a service says, on one line and without the key.
func (c *Client) Excerpt(text string) string { return c.s.excerpt([]byte(text)) }
