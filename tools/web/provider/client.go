package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

const (
	maxAnswer  = 10 << 20 // bytes
	tries      = 4
	patience   = time.Minute // with one request, unless the caller has less time
	firstPause = 300 * time.Millisecond
)

// Client asks a service: requests are sent, tried again and judged.
type Client struct {
	name, version string
	kind          kind
	base, key     string
	client        *http.Client
	now           func() time.Time
	hasty         bool
	most          int
	judge         Judge
}

// Judge may know better than the status what an answer means. It returns nil where it does not.
type Judge func(status int, body []byte) *source.Error

// ClientConfig says whom a Client asks that neither searches nor reads.
type ClientConfig struct {
	Config
	Variable string // of the environment, with the key; "" where none is needed
	Auth     string // the header that the key stands in, with what is before it; "" where requests have it themselves
	Most     int    // bytes of an answer; 0 is 10 MB
	Judge    Judge  // of requests without one of their own
}

// NewClient makes a Client. Nothing is asked.
func NewClient(c ClientConfig) *Client {
	k := kind{variable: c.Variable, keyless: c.Variable == ""}
	if c.Key != "" {
		k.auth = c.Auth
	}
	client := newClient(c.Config, k)
	client.most, client.judge = cmp.Or(c.Most, maxAnswer), c.Judge
	return client
}

func newClient(c Config, k kind) *Client {
	return &Client{
		name: c.Name, version: c.Version(), kind: k, base: strings.TrimRight(cmp.Or(c.BaseURL, k.base), "/"), key: c.Key, now: c.Now,
		hasty: c.Hasty, most: maxAnswer, client: &http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the key is for the base URL alone
		}},
	}
}

// Request is one for a service. Its body is Text, or what is written as JSON.
type Request struct {
	Method string
	Path   string // behind the base URL; or a whole URL
	Query  url.Values
	Header map[string]string
	Text   string
	JSON   any // nil for none
	// Costly says that it begins or does something: it is tried again only where it did not arrive, or was refused for the moment.
	Costly bool
	Judge  Judge
}

// Ask sends a request until it is answered, and decodes the answer. An error is a *source.Error unless ctx has ended.
func (c *Client) Ask(ctx context.Context, r Request, answer any) error {
	body, err := c.Send(ctx, r)
	if err != nil {
		return err
	}
	if reportsError(body) {
		return c.Errorf(source.Outage, source.Unavailable, "it says: %s", c.Excerpt(string(body)))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return c.malformed(body, err)
	}
	return nil
}

// post asks with JSON.
func (c *Client) post(ctx context.Context, path string, body, answer any) error {
	return c.Ask(ctx, Request{Method: http.MethodPost, Path: path, JSON: body}, answer)
}

// reportsError says that an answer with a good status is none.
func reportsError(body []byte) bool {
	if !bytes.Contains(body, []byte(`"error"`)) && !bytes.Contains(body, []byte(`"success"`)) {
		return false
	}
	var said struct {
		Success *bool `json:"success"`
		Error   any   `json:"error"`
	}
	err := json.Unmarshal(body, &said) // a list has neither
	return err == nil && (said.Success != nil && !*said.Success || !empty(said.Error))
}

// empty says that a field error reports none.
func empty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil
}

// malformed is the error about an answer that cannot be read.
func (c *Client) malformed(body []byte, err error) *source.Error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '<' {
		return c.Errorf(source.Outage, source.Malformed, "it answers with a page where it should with JSON: %s", c.Excerpt(string(body)))
	}
	return c.Errorf(source.Outage, source.Malformed, "its answer cannot be read: %s", c.hide(err.Error()))
}

// Send sends a request until it is answered, and returns the body.
func (c *Client) Send(ctx context.Context, r Request) ([]byte, error) {
	text := []byte(r.Text)
	if r.JSON != nil {
		var err error
		if text, err = json.Marshal(r.JSON); err != nil {
			return nil, c.Errorf(source.Agent, source.Malformed, "the request cannot be written: %v", err)
		}
	}
	var pauses backoff.BackOff = &backoff.ExponentialBackOff{
		InitialInterval: firstPause, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: patience,
	}
	if c.hasty {
		pauses = &backoff.ZeroBackOff{}
	}
	body, err := backoff.Retry(ctx, func() ([]byte, error) { return c.once(ctx, r, text) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(c.left(ctx)))
	if err == nil {
		return body, nil
	}
	if failed, ok := errors.AsType[*source.Error](err); ok && ctx.Err() == nil {
		return nil, failed
	}
	return nil, context.Cause(ctx)
}

// RoundTrip sends the requests of a library that speaks to the service, as costly ones. The body of an answer is whole.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	r := Request{Method: req.Method, Path: req.URL.String(), Header: map[string]string{}, Costly: true}
	for name := range req.Header {
		r.Header[name] = req.Header.Get(name)
	}
	if req.Body != nil {
		defer req.Body.Close()
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.Text = string(text)
	}
	body, err := c.Send(req.Context(), r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// left is how long a request may be tried: a pause that would end behind the caller's deadline is not begun.
func (c *Client) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return patience
	}
	return max(min(patience, deadline.Sub(c.now())), 1) // 0 would be no bound
}

// once sends a request once. An error that is not permanent may pass.
func (c *Client) once(ctx context.Context, r Request, text []byte) ([]byte, error) {
	target := r.Path
	if strings.HasPrefix(target, "/") {
		target = c.base + target
	}
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, bytes.NewReader(text))
	if err != nil {
		return nil, backoff.Permanent(c.Errorf(source.Operator, source.Malformed, "its address cannot be read: %s", c.hide(err.Error())))
	}
	req.Header.Set("User-Agent", "trajgen")
	req.Header.Set("Accept", "application/json")
	if r.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if name, before, ok := strings.Cut(c.kind.auth, ":"); ok {
		req.Header.Set(name, before+c.key)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.unanswered(r, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.most)+1))
	if err != nil {
		return nil, c.unanswered(r, err)
	}
	if len(body) > c.most {
		return nil, backoff.Permanent(c.Errorf(source.Outage, source.TooLarge, "its answer has more than %d MB", c.most>>20))
	}
	return body, c.verdict(r, resp, body)
}

// unanswered is the error about a request without an answer. What a transport decided, such as that a recording lacks the
// request, is passed on.
func (c *Client) unanswered(r Request, err error) error {
	failed, ok := errors.AsType[*source.Error](err)
	if !ok {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // which has the address, and a key that may be in it
			err = wrapped.Err
		}
		failed = c.Errorf(source.Outage, source.Unavailable, "it does not answer: %s", c.hide(err.Error()))
	}
	if failed.Class == source.Unavailable && (!r.Costly || unsent(err)) {
		return failed
	}
	return backoff.Permanent(failed)
}

// unsent says that a request did not reach the service.
func unsent(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// verdict is what a status means.
func (c *Client) verdict(r Request, resp *http.Response, body []byte) error {
	if r.Judge == nil {
		r.Judge = c.judge
	}
	if r.Judge != nil {
		if failed := r.Judge(resp.StatusCode, body); failed != nil {
			return backoff.Permanent(failed)
		}
	}
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	says := fmt.Sprintf("(status %d): %s", status, c.Excerpt(string(body)))
	where := ""
	if !c.kind.keyless {
		where = " in " + c.kind.variable
	}
	final := func(blame source.Blame, class, what string) error {
		return backoff.Permanent(c.Errorf(blame, class, "%s %s", what, says))
	}
	switch {
	case status >= 300 && status < 400:
		return final(source.Operator, source.Malformed, "it redirects; is the base URL right?")
	case status == 401, status == 403:
		return final(source.Operator, source.Refused, "it refuses the key"+where)
	case status == 402, status == 432, status == 433:
		return final(source.Operator, source.Refused, "its quota is used up, or it wants to be paid")
	case status == 404, status == 405:
		return final(source.Operator, fmt.Sprint("http_", status), "it does not know the request; is the base URL right?")
	case r.Costly && status >= 500 && (status != 503 || resp.Header.Get("Retry-After") == ""):
		return final(source.Outage, source.Unavailable, "it failed, and may do what it was asked")
	case status == 408, status == 429, status >= 500:
		failed := c.Errorf(source.Outage, source.Unavailable, "it has too much to do, or failed %s", says)
		if wait, ok := retryAfter(resp.Header); ok && !c.hasty {
			return errors.Join(failed, &backoff.RetryAfterError{Duration: wait})
		}
		return failed
	}
	return final(source.Agent, fmt.Sprint("http_", status), "it refuses the request")
}

// retryAfter is the pause that a server asks for. A date counts from that of the answer.
func retryAfter(header http.Header) (time.Duration, bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second)), true
	}
	then, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(header.Get("Date"))
	return max(then.Sub(from), 0), err == nil
}

// Errorf makes an error that names the service.
func (c *Client) Errorf(blame source.Blame, class, format string, args ...any) *source.Error {
	return source.Errorf(blame, class, "%s: %s", c.name, fmt.Sprintf(format, args...))
}

// Excerpt is the beginning of what a service says, on one line and without the key.
func (c *Client) Excerpt(text string) string {
	const most = 200
	return chars.First(strings.ToValidUTF8(strings.Join(strings.Fields(c.hide(text)), " "), ""), most, "…")
}

// hide takes the key out of a text.
func (c *Client) hide(text string) string {
	if c.key == "" {
		return text
	}
	quoted, _ := json.Marshal(c.key)
	for _, form := range []string{c.key, url.QueryEscape(c.key), url.PathEscape(c.key), strings.Trim(string(quoted), `"`)} {
		text = strings.ReplaceAll(text, form, "[secret]")
	}
	return text
}
