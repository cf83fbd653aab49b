package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/net/publicsuffix"

	"trajgen/tools/web/source"
)

const (
	maxRedirects  = 5
	maxTries      = 3
	maxRetryAfter = 20 * time.Second // a site that wants a longer pause is not asked again
	maxCookies    = 100              // of an answer
	userAgent     = "trajgen (reads pages for language model agents)"
	accept        = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/pdf;q=0.8,*/*;q=0.5"
)

// visit is the way to a page.
type visit struct {
	page   *source.Page                          // what is known so far
	allow  func(context.Context, *url.URL) error // judges each address on the way; nil allows all
	polite bool                                  // keeps a distance to the last request to a host
	use    func(body []byte, header http.Header) // is called with what came, while the page holds its place
	file   int64                                 // most bytes of a file of any kind; 0 is for pages, which have text
	left   time.Duration                         // of Config.Timeout
}

// visit asks for a page, and again where that may help.
func (f *Fetcher) visit(ctx context.Context, u *url.URL, v *visit) error {
	v.left = f.config.Timeout
	var pauses backoff.BackOff = &backoff.ExponentialBackOff{
		InitialInterval: 500 * time.Millisecond, MaxInterval: 5 * time.Second, Multiplier: 2, RandomizationFactor: 0.5,
	}
	if f.config.Recorded {
		pauses = &backoff.ZeroBackOff{}
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		v.page.FinalURL, v.page.Status, v.page.Type = "", 0, ""
		err := f.follow(ctx, u, v)
		if err != nil && failure(err).Class != source.Unavailable {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(f.config.Timeout))
	return err
}

// follow goes where a URL and its redirects lead.
func (f *Fetcher) follow(ctx context.Context, u *url.URL, v *visit) error {
	jar, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // sites redirect until a cookie comes back
	if err != nil {
		return err
	}
	for range maxRedirects + 1 {
		if v.allow != nil {
			if err := v.allow(ctx, u); err != nil {
				return backoff.Permanent(err)
			}
		}
		next, err := f.hop(ctx, u, v, jar)
		if err != nil || next == nil {
			return err
		}
		u = next
	}
	return source.Errorf(source.Agent, source.Redirects, "the page redirects more than %d times", maxRedirects)
}

// hop makes one request in its turn. It returns where that redirects to.
func (f *Fetcher) hop(ctx context.Context, u *url.URL, v *visit, jar http.CookieJar) (*url.URL, error) {
	leave, err := f.lanes.enter(ctx, u.Host, v.polite && !f.config.Recorded)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := f.config.Now()
	timed, cancel := context.WithTimeout(ctx, v.left)
	defer cancel()
	next, err := f.exchange(timed, u, v, jar)
	v.left -= f.config.Now().Sub(began)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		err = source.Errorf(source.Outage, source.Unavailable, "%s did not answer within %s", u.Host, f.config.Timeout)
		return nil, backoff.Permanent(err)
	}
	return next, err
}

func (f *Fetcher) exchange(ctx context.Context, u *url.URL, v *visit, jar http.CookieJar) (*url.URL, error) {
	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, plain.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip, br, zstd")
	for _, cookie := range jar.Cookies(&plain) {
		req.AddCookie(cookie)
	}
	resp, err := f.config.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	v.page.FinalURL, v.page.Status = plain.String(), resp.StatusCode
	cookies := resp.Cookies()
	jar.SetCookies(&plain, cookies[:min(len(cookies), maxCookies)])

	said := strings.TrimSpace(fmt.Sprintf("the site answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	location := resp.Header.Get("Location")
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return nil, f.take(ctx, resp, v)
	case code/100 == 3 && location != "":
		return f.config.Guard.Follow(&plain, location)
	case code/100 == 5, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		err := error(source.Errorf(source.Outage, source.Unavailable, "%s", said))
		switch wait := retryAfter(resp.Header, f.config.Now()); {
		case wait > maxRetryAfter:
			err = backoff.Permanent(err)
		case wait > 0 && !f.config.Recorded:
			err = errors.Join(err, &backoff.RetryAfterError{Duration: wait})
		}
		return nil, err
	}
	return nil, source.Errorf(source.Agent, "http_"+strconv.Itoa(resp.StatusCode), "%s: try another address", said)
}

// retryAfter reads how long a site wants to be left alone.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 20); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}

// failure makes a page's Error of what went wrong on the way.
func failure(err error) *source.Error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e
	}
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return source.Errorf(source.Agent, source.Malformed, "the certificate of the site is not valid: %v", wrong.Err)
	}
	// The http package has no type for these.
	if text := err.Error(); strings.Contains(text, "headers exceeded") || strings.Contains(text, "header list larger") {
		return source.Errorf(source.Agent, source.TooLarge, "the headers of the answer are larger than the limit")
	}
	return source.Errorf(source.Outage, source.Unavailable, "the site did not answer: %v", err)
}
