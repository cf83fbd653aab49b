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
	maxAnswer  = int64(10 << 20) // bytes
	tries      = 4
	patience   = time.Minute // with one request, unless the caller has less time
	firstPause = 300 * time.Millisecond
)

// service is what providers have in common: how a request is sent, tried again and judged.
type service struct {
	name, version string
	kind          kind
	base, key     string
	client        *http.Client
	now           func() time.Time
	hasty         bool
	most          int64                                       // bytes of an answer; 0 is maxAnswer
	judge         func(status int, body []byte) *source.Error // of requests without one of their own
}

// request is one for a service. Its body is text, or what is written as JSON.
type request struct {
	method string
	path   string // behind the base URL; or a whole URL
	query  url.Values
	header map[string]string
	text   string
	json   any
	// costly says that it begins something: it is tried again only where it did not arrive, or was refused for the moment.
	costly bool
	// judge may know better what an answer means. It returns nil where it does not.
	judge func(status int, body []byte) *source.Error
}

// ask sends a request until it is answered, and decodes the answer. An error is a *source.Error unless ctx has ended.
func (s *service) ask(ctx context.Context, r request, answer any) error {
	body, err := s.send(ctx, r)
	if err != nil {
		return err
	}
	if reportsError(body) {
		return s.fault(source.Outage, source.Unavailable, "it says: %s", s.excerpt(body))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return s.malformed(body, err)
	}
	return nil
}

// post asks with JSON.
func (s *service) post(ctx context.Context, path string, body, answer any) error {
	return s.ask(ctx, request{method: http.MethodPost, path: path, json: body}, answer)
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
func (s *service) malformed(body []byte, err error) *source.Error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '<' {
		return s.fault(source.Outage, source.Malformed, "it answers with a page where it should with JSON: %s", s.excerpt(body))
	}
	return s.fault(source.Outage, source.Malformed, "its answer cannot be read: %s", s.hide(err.Error()))
}

// send sends a request until it is answered, and returns the body.
func (s *service) send(ctx context.Context, r request) ([]byte, error) {
	text := []byte(r.text)
	if r.json != nil {
		var err error
		if text, err = json.Marshal(r.json); err != nil {
			return nil, s.fault(source.Agent, source.Malformed, "the request cannot be written: %v", err)
		}
	}
	var pauses backoff.BackOff = &backoff.ExponentialBackOff{
		InitialInterval: firstPause, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: patience,
	}
	if s.hasty {
		pauses = &backoff.ZeroBackOff{}
	}
	body, err := backoff.Retry(ctx, func() ([]byte, error) { return s.once(ctx, r, text) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(s.left(ctx)))
	if err == nil {
		return body, nil
	}
	if failed, ok := errors.AsType[*source.Error](err); ok && ctx.Err() == nil {
		return nil, failed
	}
	return nil, context.Cause(ctx)
}

// left is how long a request may be tried: a pause that would end behind the caller's deadline is not begun.
func (s *service) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return patience
	}
	return max(min(patience, deadline.Sub(s.now())), 1) // 0 would be no bound
}

// once sends a request once. An error that is not permanent may pass.
func (s *service) once(ctx context.Context, r request, text []byte) ([]byte, error) {
	target := r.path
	if strings.HasPrefix(target, "/") {
		target = s.base + target
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(text))
	if err != nil {
		return nil, backoff.Permanent(s.fault(source.Operator, source.Malformed, "its address cannot be read: %s", s.hide(err.Error())))
	}
	req.Header.Set("User-Agent", "trajgen")
	req.Header.Set("Accept", "application/json")
	if r.json != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if name, before, ok := strings.Cut(s.kind.auth, ":"); ok {
		req.Header.Set(name, before+s.key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, s.unanswered(r, err)
	}
	defer resp.Body.Close()
	most := cmp.Or(s.most, maxAnswer)
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, s.unanswered(r, err)
	}
	if int64(len(body)) > most {
		return nil, backoff.Permanent(s.fault(source.Outage, source.TooLarge, "its answer has more than %d MB", most>>20))
	}
	return body, s.verdict(r, resp, body)
}

// unanswered is the error about a request without an answer. What a transport decided, such as that a recording lacks the
// request, is passed on.
func (s *service) unanswered(r request, err error) error {
	failed, ok := errors.AsType[*source.Error](err)
	if !ok {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // which has the address, and a key that may be in it
			err = wrapped.Err
		}
		failed = s.fault(source.Outage, source.Unavailable, "it does not answer: %s", s.hide(err.Error()))
	}
	if failed.Class == source.Unavailable && (!r.costly || unsent(err)) {
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
func (s *service) verdict(r request, resp *http.Response, body []byte) error {
	if r.judge == nil {
		r.judge = s.judge
	}
	if r.judge != nil {
		if failed := r.judge(resp.StatusCode, body); failed != nil {
			return backoff.Permanent(failed)
		}
	}
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	says := fmt.Sprintf("(status %d): %s", status, s.excerpt(body))
	final := func(blame source.Blame, class, what string) error {
		return backoff.Permanent(s.fault(blame, class, "%s %s", what, says))
	}
	switch {
	case status >= 300 && status < 400:
		return final(source.Operator, source.Malformed, "it redirects; is the base URL right?")
	case status == 401, status == 403:
		return final(source.Operator, source.Refused, "it refuses the key"+s.where())
	case status == 402, status == 432, status == 433:
		return final(source.Operator, source.Refused, "its quota is used up, or it wants to be paid")
	case status == 404, status == 405:
		return final(source.Operator, fmt.Sprint("http_", status), "it does not know the request; is the base URL right?")
	case r.costly && status >= 500 && (status != 503 || resp.Header.Get("Retry-After") == ""):
		return final(source.Outage, source.Unavailable, "it failed, and may do what it was asked")
	case status == 408, status == 429, status >= 500:
		failed := s.fault(source.Outage, source.Unavailable, "it has too much to do, or failed %s", says)
		if wait, ok := retryAfter(resp.Header); ok && !s.hasty {
			return errors.Join(failed, &backoff.RetryAfterError{Duration: wait})
		}
		return failed
	}
	return final(source.Agent, fmt.Sprint("http_", status), "it refuses the request")
}

// where says which environment variable has the key.
func (s *service) where() string {
	if s.kind.keyless {
		return ""
	}
	return " in " + s.kind.variable
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

// fault makes an error that names the provider.
func (s *service) fault(blame source.Blame, class, format string, args ...any) *source.Error {
	return source.Errorf(blame, class, "%s: %s", s.name, fmt.Sprintf(format, args...))
}

// excerpt is the beginning of what a server says, on one line.
func (s *service) excerpt(body []byte) string {
	const most = 200
	text := s.hide(string(body))
	return chars.First(strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), ""), most, "…")
}

// hide takes the key out of a text.
func (s *service) hide(text string) string {
	if s.key == "" {
		return text
	}
	quoted, _ := json.Marshal(s.key)
	for _, form := range []string{s.key, url.QueryEscape(s.key), url.PathEscape(s.key), strings.Trim(string(quoted), `"`)} {
		text = strings.ReplaceAll(text, form, "[secret]")
	}
	return text
}
