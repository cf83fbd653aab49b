package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// What a zero field of Config means.
const (
	DefaultTimeout     = 10 * time.Minute
	DefaultIdleTimeout = 2 * time.Minute
	DefaultRetryBase   = 2 * time.Second
	DefaultRetryMax    = 60 * time.Second
	DefaultConcurrency = 512
)

// MaxRetryAfter is the longest pause that a server can ask for; longer wishes are cut to it.
const MaxRetryAfter = 120 * time.Second

// Config says which model to ask, where and how.
type Config struct {
	Name    string // as the server knows it
	BaseURL string // up to and without /chat/completions, e.g. http://localhost:8000/v1
	APIKey  string // sent as a bearer token; empty sends none

	Temperature *float64 // nil leaves it to the server; 0 is sent as 0
	TopP        *float64
	MaxTokens   int // of one reply; 0 leaves it to the server

	Stream bool
	// Timeout bounds one try from the first byte sent to the last byte received. IdleTimeout bounds the silence: of a
	// stream before its headers and between any two reads, of a plain reply only after its headers, because a server
	// sends those when the whole reply is ready.
	Timeout, IdleTimeout time.Duration

	MaxRetries int // tries after the first one; 0 means none
	// The n-th pause is RetryBase*2^(n-1), at most RetryMax, and up to half of it more or less by chance. A
	// Retry-After of the server that is longer wins, up to MaxRetryAfter.
	RetryBase, RetryMax time.Duration

	// ExtraBody is merged into every request body. A key set to null takes the field out, for servers that refuse it.
	ExtraBody map[string]any
	Headers   map[string]string
	// TraceHeaders adds X-Trajgen-Episode and X-Trajgen-Task (both URL-escaped). The scripted server reads them.
	TraceHeaders bool
	// SendReasoning sends the reasoning of earlier turns back as reasoning_content; most servers want it left out.
	SendReasoning bool

	Concurrency int                                   // connections that are kept open between requests
	Proxy       func(*http.Request) (*url.URL, error) // nil means none
	Now         func() time.Time                      // for a Retry-After given as a date; nil means time.Now
	Logger      *slog.Logger                          // nil is silent
}

// ownKeys are the body fields that ExtraBody must not set, and what sets them instead.
var ownKeys = map[string]string{
	"model":    "the model's name",
	"messages": "the conversation",
	"tools":    "the toolsets",
	"stream":   "the stream setting",
	"n":        "the number of samples",
}

// Validate reports everything that is wrong at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if strings.TrimSpace(c.Name) == "" {
		bad("model name is empty (want the name that the server uses, e.g. one of its /models)")
	}
	switch u, err := url.Parse(c.BaseURL); {
	case c.BaseURL == "":
		bad("base URL is empty (want e.g. http://localhost:8000/v1)")
	case err != nil:
		bad("base URL is not a URL (want e.g. http://localhost:8000/v1)") // err would quote a password in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		bad("base URL %q (want http:// or https:// and a host)", u.Redacted())
	case u.User != nil:
		bad("base URL of %s carries a user or password (want the API key in its own setting)", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		bad("base URL of %s carries a query or fragment (want only scheme, host and path)", u.Host)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		bad("base URL %q (want it without /chat/completions)", u.Redacted())
	}
	if c.APIKey != strings.TrimSpace(c.APIKey) || !httpguts.ValidHeaderFieldValue(c.APIKey) {
		bad("API key has white space around it or control characters in it (a newline at its end?)")
	}
	if t := c.Temperature; t != nil && !(*t >= 0 && *t <= 5) {
		bad("temperature %v (want 0 to 5)", *t)
	}
	if p := c.TopP; p != nil && !(*p >= 0 && *p <= 1) {
		bad("top_p %v (want 0 to 1)", *p)
	}
	if c.MaxTokens < 0 || c.MaxRetries < 0 || c.Concurrency < 0 {
		bad("max tokens %d, retries %d, concurrency %d (want 0 or more)", c.MaxTokens, c.MaxRetries, c.Concurrency)
	}
	if min(c.Timeout, c.IdleTimeout, c.RetryBase, c.RetryMax) < 0 {
		bad("timeout %v, idle timeout %v, retry base %v, retry max %v (want 0 or more)",
			c.Timeout, c.IdleTimeout, c.RetryBase, c.RetryMax)
	}
	for _, key := range slices.Sorted(maps.Keys(c.ExtraBody)) {
		if instead, own := ownKeys[key]; own {
			bad("extra body field %q is set by %s", key, instead)
		} else if _, err := json.Marshal(c.ExtraBody[key]); err != nil {
			bad("extra body field %q: %w", key, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(c.Headers[name]) {
			bad("header %q is not valid in HTTP", name) // without the value: it may be a secret
		}
	}
	return errors.Join(errs...)
}

// withDefaults replaces zeros by what they mean.
func (c Config) withDefaults() Config {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&c.Timeout, DefaultTimeout)
	set(&c.IdleTimeout, DefaultIdleTimeout)
	set(&c.RetryBase, DefaultRetryBase)
	set(&c.RetryMax, DefaultRetryMax)
	c.RetryMax = max(c.RetryMax, c.RetryBase)
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return c
}

// secrets returns a replacer that takes the API key and the values of the headers out of a text. Shorter ones are no
// secrets but words such as "none", which would only make messages unreadable.
func (c Config) secrets() *strings.Replacer {
	const shortest = 6
	var values []string
	if len(c.APIKey) >= shortest {
		values = append(values, c.APIKey)
	}
	for _, value := range c.Headers {
		if len(value) >= shortest {
			values = append(values, value)
			if _, token, ok := strings.Cut(value, " "); ok && len(token) >= shortest { // "Bearer abc"
				values = append(values, token)
			}
		}
	}
	// The longest first: a key that contains another must not be left in half.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, value := range values {
		quoted, _ := json.Marshal(value)
		for _, form := range []string{value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value)} {
			pairs = append(pairs, form, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// seconds converts a number of seconds without overflow.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Min(s, math.MaxInt32) * float64(time.Second))
}
