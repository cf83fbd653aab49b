package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"trajgen/pipeline/model/gate"
	"trajgen/pipeline/model/record"
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

// Config says which model to ask, where and how. "", 0 and nil leave a setting to the server, unless its comment says otherwise.
type Config struct {
	// Settings name the model. BaseURL ends before /chat/completions, or is unix:///run/x.sock; with Endpoints, an episode stays
	// at one of them while that works and is not crowded. MaxTokensField is one of the Limit constants, SendReasoning one of the
	// Reasoning constants, ToolChoice one of the ToolChoice constants or the name of a tool, which requests that offer the tool
	// then require.
	//
	// ToolFormat is the format of calls that the server leaves in the content: a name of rawtext.Formats, ToolFormatAuto, or
	// ToolFormatNative; "" reads none. The server's own calls always come first. Calls that stay in the content are an error,
	// ClassUnread, except with ToolFormatNative. TokenIDs names the server whose way of asking for token ids is used, or is
	// TokenIDsAuto; token ids that a server sends unasked are kept as well.
	//
	// A key of ExtraBody that is set to null removes the field from every request, for servers that refuse it.
	Settings
	// Timeout of Patience bounds one try, from the first byte sent to the last byte received. IdleTimeout bounds the silence: of
	// a stream before its headers and between any two reads, of a plain reply only after its headers, because a server sends
	// those when the whole reply is ready. EpisodeRetries includes Request.Retried. The limiter moves the requests in flight at
	// an endpoint between MinInFlight and MaxInFlight; 0 means 1 and Concurrency.
	Patience
	// The n-th pause between tries is drawn between 0 and RetryBase*2^(n-1), at most RetryMax. A longer Retry-After of the
	// server wins, up to MaxRetryAfter.
	RetryBase, RetryMax time.Duration
	// Outages is called when an outage begins, after each probe that fails, and when the outage is over; all requests wait
	// meanwhile. It must not block. With nil, outages are not looked for, and requests fail in them as at any other time.
	Outages func(Outage)

	APIKey string // sent as a bearer token; empty sends none
	// Secrets are further values that, like APIKey, are removed from all answers of servers, such as secret Headers.
	Secrets []string
	// TraceHeaders adds X-Trajgen-Episode and X-Trajgen-Task (both URL-escaped). The scripted server reads them.
	TraceHeaders bool

	// Processors hold back requests that this process has no processor time for; all its clients share them. Nil holds none back.
	Processors *gate.Processors

	// Window is how many tokens a prompt and its reply may have together; 0 uses the server's figure.
	Window int
	Meter  Meter // pays for each try; nil pays nothing

	// Record keeps every exchange of an episode (see Asker) on a tape. Replay answers in place of the endpoints, without any wait.
	// Role distinguishes the models of one episode on a tape; the agent's is empty.
	Record *record.Tape
	Replay *record.Replay
	Role   string

	// Images reads an image of a message by its digest. It is called when a request is sent.
	Images func(sha256 string) ([]byte, error)

	Concurrency int                                   // connections that are kept open between requests
	Proxy       func(*http.Request) (*url.URL, error) // nil means none
	Now         func() time.Time                      // for a Retry-After given as a date; nil means time.Now
	Logger      *slog.Logger                          // nil is silent
}

// ownKeys are the body fields that ExtraBody must not set, each with what sets it instead.
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
	for _, base := range c.bases() {
		_, err := parseBase(base)
		errs = append(errs, err)
	}
	if len(c.Endpoints) > 0 && c.BaseURL != "" {
		bad("both a base URL and endpoints are given (want one of them)")
	}
	if bases := c.bases(); len(slices.Compact(slices.Sorted(slices.Values(bases)))) < len(bases) {
		bad("an endpoint is given twice")
	}
	if c.MinInFlight < 0 || c.MaxInFlight < 0 || c.MaxInFlight > 0 && c.MinInFlight > c.MaxInFlight {
		bad("requests in flight from %d to %d (want 0 or more, and the least first)", c.MinInFlight, c.MaxInFlight)
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
	if c.MaxTokens < 0 || c.Retries < 0 || c.EpisodeRetries < 0 || c.Concurrency < 0 {
		bad("max tokens %d, retries %d, an episode's retries %d, concurrency %d (want 0 or more)",
			c.MaxTokens, c.Retries, c.EpisodeRetries, c.Concurrency)
	}
	if min(c.Timeout, c.IdleTimeout, c.RetryBase, c.RetryMax) < 0 {
		bad("timeout %v, idle timeout %v, retry base %v, retry max %v (want 0 or more)",
			c.Timeout, c.IdleTimeout, c.RetryBase, c.RetryMax)
	}
	errs = append(errs, checkToolFormat(c.ToolFormat), c.checkTokenIDs(), c.checkAsking())
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

// bases are the base URLs of all endpoints.
func (c Config) bases() []string {
	if len(c.Endpoints) == 0 {
		return []string{strings.TrimRight(c.BaseURL, "/")}
	}
	bases := make([]string, len(c.Endpoints))
	for i, base := range c.Endpoints {
		bases[i] = strings.TrimRight(strings.TrimSpace(base), "/")
	}
	return bases
}

// place is a parsed base URL.
type place struct {
	name   string // for messages, without secrets
	url    string // of HTTP, without a query
	query  string // of every request, such as Azure's api-version
	socket bool   // the host stands for a Unix socket
}

// secretField finds names in a query whose values are secret: base URLs are recorded and shown.
var secretField = regexp.MustCompile(`(?i)(key|token|secret|sig|code|auth|pass)[^=&]*=`)

// parseBase parses a base URL. For a Unix socket it is unix:///run/x.sock, with /v1 as the path, or with another path
// http+unix://%2Frun%2Fx.sock/api/v1.
func parseBase(base string) (place, error) {
	var at place
	address, isSocket := strings.CutPrefix(base, "unix://")
	if isSocket {
		file, query, _ := strings.Cut(address, "?")
		at.name, address = file, "/v1?"+query
	} else if address, isSocket = strings.CutPrefix(base, "http+unix://"); isSocket {
		end := strings.IndexAny(address+"/", "/?")
		at.name, _ = url.PathUnescape(address[:end])
		address = address[end:]
	}
	if isSocket {
		if !strings.HasPrefix(at.name, "/") {
			return place{}, fmt.Errorf("base URL %q has no path of a socket (want unix:///run/x.sock, or http+unix://%%2Frun%%2Fx.sock/v1)", base)
		}
		at.socket, address = true, "http://"+socketHost(at.name)+address
	}
	u, err := url.Parse(address)
	if err == nil && !isSocket {
		at.name = u.Host
	}
	switch {
	case base == "":
		return place{}, errors.New("base URL is empty (want e.g. http://localhost:8000/v1)")
	case err != nil:
		return place{}, errors.New("base URL is not a URL (want e.g. http://localhost:8000/v1)") // err would quote a password in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return place{}, fmt.Errorf("base URL %q (want http:// or https:// and a host, or unix:// and the path of a socket)", u.Redacted())
	case u.User != nil:
		return place{}, fmt.Errorf("base URL of %s carries a user or password (want the API key in its own setting)", at.name)
	case u.Fragment != "" || secretField.MatchString(u.RawQuery):
		return place{}, fmt.Errorf("base URL of %s carries a fragment or a secret (want scheme, host, path and at most a query such as ?api-version=; a key in its own setting)", at.name)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return place{}, fmt.Errorf("base URL %q (want it without /chat/completions)", base)
	}
	at.query = u.RawQuery
	u.RawQuery, u.ForceQuery = "", false
	at.url = strings.TrimRight(u.String(), "/")
	return at, nil
}

// withDefaults replaces zeros by their defaults.
func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.RetryBase = cmp.Or(c.RetryBase, DefaultRetryBase)
	c.RetryMax = max(cmp.Or(c.RetryMax, DefaultRetryMax), c.RetryBase)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.MaxInFlight = cmp.Or(c.MaxInFlight, max(c.Concurrency, c.MinInFlight))
	c.TokenIDs = c.TokenServer()
	c.Endpoints = c.bases()
	c.BaseURL = c.Endpoints[0]
	return c
}

// seconds converts a number of seconds without overflow.
func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Min(s, math.MaxInt32) * float64(time.Second))
}
