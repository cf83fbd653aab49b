package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Settings say what the web tools answer from, as in the run file.
type Settings struct {
	Mode         string              `yaml:"mode" flag:"web" experiment:"given" help:"what the web tools answer from: live (default), record (live, and all that came is kept in the run directory), replay (a recording alone) or corpus (documents alone)"`
	Recording    string              `yaml:"recording" flag:"web-recording" experiment:"in web" help:"with replay: the run directory whose web was recorded"`
	Corpus       string              `yaml:"corpus" flag:"corpus" experiment:"in web" help:"documents that search, open and find answer from, and with mode corpus the web tools, too: an index (trajgen corpus build), bundled, or the URL of a retrieval server"`
	Search       string              `yaml:"search" flag:"web-search" experiment:"in web" help:"provider of web_search (default: the first whose key is set, else duckduckgo)"`
	Extract      string              `yaml:"extract" flag:"web-extract" experiment:"in web" help:"provider of web_extract and web_crawl (default: trajgen fetches and extracts pages itself)"`
	Cache        string              `yaml:"cache" flag:"web-cache" experiment:"no" help:"with live: a directory that keeps answers, so that the same request is not made again for a while"`
	CacheTTL     time.Duration       `yaml:"cache_ttl" flag:"web-cache-ttl" experiment:"no" help:"how long the cache's answers are used (default 24h)"`
	Summary      Summary             `yaml:"summary,omitempty" flag:"web-summary" experiment:"in web"` // a model that summarises long pages
	Providers    map[string]Provider `yaml:"providers,omitempty" flag:"web-providers" experiment:"in web"`
	AllowPrivate []string            `yaml:"allow_private,omitempty" flag:"web-allow-private" experiment:"in web"` // hosts and address ranges of one's own network that pages may be read from
	Block        []string            `yaml:"block,omitempty" flag:"web-block" experiment:"in web"`                 // sites that are never read: a domain with all below it
	Loose        bool                `yaml:"loose" flag:"web-loose" experiment:"in web" help:"with replay: parameters of URLs that only track or defeat caches need not be equal"`
	MaxMisses    int                 `yaml:"max_misses" flag:"web-max-misses" experiment:"in web" help:"with replay: requests of an episode that the recording may lack before the episode ends in a tool_error (default 0)"`
}

// Provider says where a provider is and how it is asked, where that is not what is usual.
type Provider struct {
	BaseURL          string `yaml:"base_url,omitempty" experiment:"in web"`
	APIKeyEnv        string `yaml:"api_key_env,omitempty" experiment:"no"`
	provider.Generic `yaml:",inline"`
}

// Summary says which model summarises long pages. Without a name they are shown in parts.
type Summary struct {
	Model     string `yaml:"model" experiment:"in web"`
	BaseURL   string `yaml:"base_url,omitempty" experiment:"no"`
	APIKeyEnv string `yaml:"api_key_env,omitempty" experiment:"no"`
	MaxChars  int    `yaml:"max_chars,omitempty" experiment:"in web"` // of a summary; 0 is 5000
}

// The modes.
const (
	Live   = "live"
	Record = "record"
	Replay = "replay"
	Corpus = "corpus"
)

// maxSummary is the most characters of a summary.
const maxSummary = 50_000

var modes = []string{Live, Record, Replay, Corpus}

// Bundled is the corpus that comes along.
const Bundled = "bundled"

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("web: "+format, args...))
		}
	}
	bad(s.Mode != "" && !slices.Contains(modes, s.Mode), "unknown mode %q (have %s)", s.Mode, strings.Join(modes, ", "))
	bad((s.Mode == Replay) != (s.Recording != ""), "mode replay and recording (--web-recording RUN) go together")
	bad(s.Mode == Corpus && s.Corpus == "", "mode corpus needs corpus: an index, %s, or the URL of a retrieval server", Bundled)
	bad(s.Cache != "" && s.Mode != "" && s.Mode != Live, "cache is for mode live")
	bad(s.CacheTTL < 0 || s.CacheTTL > 0 && s.Cache == "", "cache_ttl goes with cache, and is not below 0")
	bad(s.Mode != Replay && (s.Loose || s.MaxMisses != 0), "loose and max_misses are for mode replay")
	bad(s.MaxMisses < 0, "max_misses is %d; not below 0", s.MaxMisses)
	bad(s.Summary.Model == "" && s.Summary != (Summary{}), "summary names no model")
	bad(s.Summary.MaxChars < 0 || s.Summary.MaxChars > maxSummary, "summary.max_chars is %d; from 1 to %d", s.Summary.MaxChars, maxSummary)
	names := provider.Names()
	for _, name := range append([]string{s.Search, s.Extract}, slices.Sorted(maps.Keys(s.Providers))...) {
		bad(name != "" && !slices.Contains(names, name), "unknown provider %q (have %s)", name, strings.Join(names, ", "))
	}
	return errors.Join(problems...)
}

// config is a provider with what the run file and the environment say about it.
func (s Settings) config(name string, getenv func(string) string) provider.Config {
	c, own := provider.FromEnv(name, getenv), s.Providers[name]
	if own.BaseURL != "" {
		c.BaseURL = own.BaseURL
	}
	if own.APIKeyEnv != "" {
		c.Key = getenv(own.APIKeyEnv)
	}
	if own.Generic != (provider.Generic{}) {
		c.Generic = &own.Generic
	}
	return c
}

// Keys are the variables of all providers.
func (s Settings) Keys() (all []provider.Key) {
	for _, name := range provider.Names() {
		variable := cmp.Or(s.Providers[name].APIKeyEnv, provider.Variable(name))
		if variable == "" {
			continue
		}
		all = append(all, provider.Key{
			Toolset: "web", Service: name, Variable: variable, Public: variable == provider.Address(name),
			Try: func(ctx context.Context, c provider.Config) error {
				asked := s.config(name, func(name string) string { return map[string]string{variable: c.Key}[name] })
				asked.Transport, asked.Now = c.Transport, c.Now
				opened, err := provider.Open(asked)
				searcher, ok := opened.(source.Searcher)
				switch {
				case err != nil:
					return source.Errorf(source.Operator, source.Malformed, "%v", err)
				case !ok:
					return source.Errorf(source.Operator, source.Unsupported, "%s does not search", name)
				}
				_, err = searcher.Search(ctx, source.Query{Text: "weather", Limit: 1})
				return err
			},
		})
	}
	return all
}

// Variables are the variables whose values are keys of providers and of the model that summarises.
func (s Settings) Variables() []string {
	all := []string{}
	if s.Summary.APIKeyEnv != "" {
		all = append(all, s.Summary.APIKeyEnv)
	}
	for _, key := range s.Keys() {
		if !key.Public {
			all = append(all, key.Variable)
		}
	}
	if s.Summary.APIKeyEnv != "" {
		all = append(all, s.Summary.APIKeyEnv)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
