// Package provider searches and reads the web through services of others: one file for each.
package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"trajgen/tools/web/source"
)

// Provider is a service. It is also a source.Searcher, a source.Reader or a source.Crawler, or several of these.
type Provider interface {
	// Name is one of Names.
	Name() string
	// Version is that of the Config.
	Version() string
}

// Config says which provider is opened, and how.
type Config struct {
	Name    string
	BaseURL string // "" for the provider's own
	Key     string // where it needs one
	// Transport carries the requests.
	Transport http.RoundTripper
	Now       func() time.Time
	// Hasty leaves out the pauses between tries, as nothing but a recording answers.
	Hasty bool
	// Generic describes the provider generic, and no other.
	Generic *Generic
}

// Version names the provider and the form of our requests, such as exa/1: a recording of other ones does not answer them.
func (c Config) Version() string {
	if c.Generic == nil {
		return c.Name + "/1"
	}
	described, _ := json.Marshal(c.Generic)
	sum := sha256.Sum256(described)
	return c.Name + "/" + hex.EncodeToString(sum[:6])
}

// kind is how a provider is opened.
type kind struct {
	variable string // of the environment, with the key, or with the base URL where no key is needed
	base     string // "" where each has its own
	auth     string // the header that the key stands in, with what is before it
	keyless  bool
	most     int // results that it can be asked for; 0 for any number
	filters  []filter
	open     func(*Client, Config) (Provider, error)
}

// filter is a field of a query that a provider knows what to do with.
type filter string

const (
	language filter = "language"
	site     filter = "site"
	after    filter = "after"
)

// farAway ends a span of days where a provider wants an end. Today would make a request another one when its recording is played.
const farAway = "2100-01-01"

var kinds = map[string]kind{
	"tavily":     tavilyKind,
	"exa":        exaKind,
	"parallel":   parallelKind,
	"firecrawl":  firecrawlKind,
	"searxng":    searxngKind,
	"brave":      braveKind,
	"serper":     serperKind,
	"duckduckgo": duckduckgoKind,
	"searchr1":   searchr1Kind,
	"generic":    genericKind,
}

// Names are the providers.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// picked is the order in which Pick looks. What needs neither a key nor an address is only used when it is named.
var picked = []string{"tavily", "exa", "parallel", "firecrawl", "searxng", "brave", "serper"}

// Pick chooses the first provider whose environment variable is set.
func Pick(getenv func(string) string) (c Config, found bool) {
	for _, name := range picked {
		if c := FromEnv(name, getenv); c.Key != "" || c.BaseURL != "" {
			return c, true
		}
	}
	return Config{}, false
}

// FromEnv is the named provider with what the environment says about it.
func FromEnv(name string, getenv func(string) string) Config {
	c := Config{Name: name}
	switch k := kinds[name]; {
	case k.variable == "":
	case k.keyless:
		c.BaseURL = getenv(k.variable)
	default:
		c.Key = getenv(k.variable)
	}
	return c
}

// Variable is the environment variable of a provider, with its key or its address; "" where it needs neither.
func Variable(name string) string { return kinds[name].variable }

// Address is the environment variable with the address of a provider that needs no key; "" for others.
func Address(name string) string {
	if !kinds[name].keyless {
		return ""
	}
	return kinds[name].variable
}

// Open opens a provider. That is cheap: nothing is asked.
func Open(c Config) (Provider, error) {
	k, ok := kinds[c.Name]
	if !ok {
		return nil, fmt.Errorf("unknown web provider %q (have %s)", c.Name, strings.Join(Names(), ", "))
	}
	if c.Transport == nil || c.Now == nil {
		panic("provider: a Transport and a clock are needed")
	}
	s := newClient(c, k)
	var wrong error
	if !k.keyless && s.key == "" && c.BaseURL == "" && !c.Hasty { // a server of one's own may want none
		wrong = fmt.Errorf("web provider %s needs a key: set %s", c.Name, k.variable)
	}
	u, err := url.Parse(s.base)
	if c.Name != "generic" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		err := fmt.Errorf("web provider %s: %q is not a base URL (want one such as https://search.example.org)", c.Name, s.base)
		wrong = errors.Join(wrong, err)
	}
	if (c.Generic != nil) != (c.Name == "generic") {
		wrong = errors.Join(wrong, fmt.Errorf("web provider %s: a description of requests belongs to generic, which needs one", c.Name))
	}
	if wrong != nil {
		return nil, wrong
	}
	return k.open(s, c)
}

// Name is the provider's.
func (s *Client) Name() string { return s.name }

// Version is the provider's.
func (s *Client) Version() string { return s.version }

// accept refuses what the provider cannot do, before it is asked, and bounds the number of results.
func (s *Client) accept(q *source.Query) error {
	for _, asked := range []struct {
		filter filter
		value  string
	}{{language, q.Language}, {site, q.Site}, {after, q.After}} {
		if asked.value != "" && !slices.Contains(s.kind.filters, asked.filter) {
			return source.Errorf(source.Agent, source.Unsupported, "%s cannot search by %s: leave it out", s.name, asked.filter)
		}
	}
	q.Limit = max(q.Limit, 1)
	if s.kind.most > 0 {
		q.Limit = min(q.Limit, s.kind.most)
	}
	return nil
}

// operators is the text of a query for engines that know the operator site.
func operators(q source.Query) string {
	if q.Site == "" {
		return q.Text
	}
	return q.Text + " site:" + q.Site
}
