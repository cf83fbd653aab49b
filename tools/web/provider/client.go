package provider

import (
	"context"
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
	Transport     http.RoundTripper
	Now           func() time.Time
}

// NewClient makes a Client. Nothing is asked.
func NewClient(c ClientConfig) *Client {
	return &Client{&service{
		name: c.Name, kind: kind{variable: c.Variable, keyless: c.Variable == ""}, base: strings.TrimRight(c.BaseURL, "/"), key: c.Key,
		now: c.Now, client: &http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the key is for the base URL alone
		}},
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

// Send sends a request until it is answered, and returns the body, which has at most 10 MB.
func (c *Client) Send(ctx context.Context, r Request) ([]byte, error) {
	return c.s.send(ctx, r.request())
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
