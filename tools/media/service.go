package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

const (
	maxAnswer  = 32 << 20 // bytes of an answer
	tries      = 4
	firstPause = time.Second
)

// service is a provider, as a call asks it.
type service struct {
	kind
	name, version string
	key           string
	client        *http.Client
	next          http.RoundTripper
	now           func() time.Time
	hasty         bool // a recording answers, so that requests follow without pauses
}

// service is a provider for a call.
func (v *View) service(name, call string) *service {
	own := v.config.Settings.Providers[name]
	s := &service{kind: kinds[name], name: name, version: name + "/1", now: v.config.Now, hasty: v.attempt.Web.Mode() == web.Replay}
	s.base, s.keyEnv = strings.TrimRight(cmp.Or(own.BaseURL, s.base), "/"), cmp.Or(own.APIKeyEnv, s.keyEnv)
	s.key = v.config.Getenv(s.keyEnv)
	s.next = v.attempt.Web.Through(call, s.version, v.live)
	s.client = &http.Client{Transport: s, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is for the base URL alone
	}}
	return s
}

// RoundTrip sends a request until it is answered. It asks again only where the provider says that it has not begun: what is made
// is paid for. An error is a *source.Error unless the context has ended; the body of an answer is whole and in memory.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	var pauses backoff.BackOff = &backoff.ExponentialBackOff{
		InitialInterval: firstPause, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: time.Minute,
	}
	if s.hasty {
		pauses = &backoff.ZeroBackOff{}
	}
	left := time.Hour
	if deadline, ok := ctx.Deadline(); ok {
		left = max(deadline.Sub(s.now()), 1) // a pause that would end behind it is not begun
	}
	resp, err := backoff.Retry(ctx, func() (*http.Response, error) { return s.once(req) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(left))
	if err == nil {
		return resp, nil
	}
	if failed, ok := errors.AsType[*source.Error](err); ok && ctx.Err() == nil {
		return nil, failed
	}
	return nil, cmp.Or(context.Cause(ctx), err)
}

func (s *service) once(req *http.Request) (*http.Response, error) {
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		var err error
		if again.Body, err = req.GetBody(); err != nil {
			return nil, backoff.Permanent(err)
		}
	}
	again.Header.Set("User-Agent", "trajgen")
	resp, err := s.next.RoundTrip(again)
	if err != nil {
		return nil, backoff.Permanent(s.failure(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, backoff.Permanent(s.failure(err))
	}
	if len(body) > maxAnswer {
		return nil, backoff.Permanent(s.fault(source.Outage, source.TooLarge, "its answer has more than %d MB", maxAnswer>>20))
	}
	if err := s.verdict(resp, body); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// RefusedPrompt is the class of a prompt that a provider's policy refuses.
const RefusedPrompt = "refused_prompt"

// refusals are what providers call a refusal of a prompt, in their errors.
var refusals = []string{"moderation_blocked", "content_policy", "content_filter", "safety_violation", "nsfw"}

// verdict is what a status means. An error that is not permanent may pass.
func (s *service) verdict(resp *http.Response, body []byte) error {
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	says := fmt.Sprintf("(status %d): %s", status, s.excerpt(body))
	final := func(blame source.Blame, class, what string) error {
		return backoff.Permanent(s.fault(blame, class, "%s %s", what, says))
	}
	for _, refusal := range refusals {
		if status < 500 && status != 429 && bytes.Contains(body, []byte(refusal)) {
			return final(source.Agent, RefusedPrompt, "its policy refuses the prompt; ask for something else")
		}
	}
	switch {
	case status >= 300 && status < 400:
		return final(source.Operator, source.Malformed, "it redirects; is the base URL right?")
	case status == 401, status == 403:
		return final(source.Operator, source.Refused, "it refuses the key in "+s.keyEnv)
	case status == 402, bytes.Contains(body, []byte("insufficient_quota")):
		return final(source.Operator, source.Refused, "its quota is used up, or it wants to be paid")
	case status == 404, status == 405:
		return final(source.Operator, fmt.Sprint("http_", status), "it does not know the request; are base URL and model right?")
	case status == 429, status == 503:
		failed := s.fault(source.Outage, source.Unavailable, "it has too much to do %s", says)
		if wait, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && wait >= 0 && wait < 1e6 && !s.hasty {
			return errors.Join(failed, &backoff.RetryAfterError{Duration: time.Duration(wait * float64(time.Second))})
		}
		return failed
	case status >= 500, status == 408:
		return final(source.Outage, source.Unavailable, "it failed")
	}
	return final(source.Agent, fmt.Sprint("http_", status), "it refuses the request")
}

// send sends JSON and reads JSON, as providers do that no library speaks to. An error is a *source.Error, unless ctx has ended.
func (s *service) send(ctx context.Context, method, target string, header map[string]string, body, answer any) error {
	var text io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, text)
	if err != nil {
		return s.fault(source.Operator, source.Malformed, "its address cannot be read: %s", s.hide(err.Error()))
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return s.failure(err)
	}
	data, err := io.ReadAll(resp.Body) // which is in memory
	if err != nil {
		return err
	}
	if raw, ok := answer.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return s.fault(source.Outage, source.Malformed, "its answer cannot be read: %v: %s", err, s.excerpt(data))
	}
	return nil
}

// failure is the error of a request: what a transport decided is passed on, and so is the end of a context.
func (s *service) failure(err error) error {
	if failed, ok := errors.AsType[*source.Error](err); ok {
		return failed
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return s.fault(source.Outage, source.Unavailable, "it does not answer: %s", s.hide(err.Error()))
}

// fault makes an error that names the provider.
func (s *service) fault(blame source.Blame, class, format string, args ...any) *source.Error {
	return source.Errorf(blame, class, "%s: %s", s.name, fmt.Sprintf(format, args...))
}

// excerpt is the beginning of what a provider says, on one line.
func (s *service) excerpt(body []byte) string {
	text := strings.Join(strings.Fields(string(body[:min(len(body), 4096)])), " ")
	return chars.First(strings.ToValidUTF8(s.hide(text), ""), 200, "…")
}

// hide takes the key out of a text.
func (s *service) hide(text string) string {
	if s.key == "" {
		return text
	}
	return strings.ReplaceAll(text, s.key, "[secret]")
}
