package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Settings say where browsers are opened.
type Settings struct {
	Place   string         // one of Names
	URL     string         // of the endpoint or server, where {key} stands for the key; "" for the provider's own
	KeyEnv  string         // environment variable with the key; "" for the provider's usual one
	Minutes int            // most minutes that a session lives; 0 for 15
	Options map[string]any // further fields of the request that makes a session, as the provider documents them
}

const defaultMinutes = 15 // which the smallest plans of all providers allow

// Names are the places.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// Validate says what is wrong. webMode is that of the run's web tools: "" and live are the live web.
func (s Settings) Validate(webMode string) error {
	k, ok := kinds[s.Place]
	if !ok {
		return fmt.Errorf("browser: unknown place %q (have %s)", s.Place, strings.Join(Names(), ", "))
	}
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("browser: "+format, args...))
		}
	}
	bad(webMode != "" && webMode != "live", "place %s is of the live web alone: what a browser there loads is neither recorded nor "+
		"replayed; leave out the place, or the web mode %s", s.Place, webMode)
	address := cmp.Or(s.URL, k.base)
	u, err := url.Parse(address)
	bad(address == "", "place %s needs url, such as http://127.0.0.1:9222", s.Place)
	bad(address != "" && (err != nil || u.Host == "" || !slices.Contains(k.schemes(), u.Scheme)),
		"url %q of place %s is not an address that begins with %s", s.URL, s.Place, strings.Join(k.schemes(), ":// or ")+"://")
	bad(strings.Contains(s.URL, keyMark) && s.KeyEnv == "",
		"url has %s, and api_key_env does not say which variable has the key", keyMark)
	bad(k.most == 0 && s.Minutes != 0, "minutes is for places that rent browsers, and %s does not", s.Place)
	bad(s.Minutes < 0 || k.most > 0 && s.Minutes > k.most, "minutes is %d; from 1 to %d at %s", s.Minutes, k.most, s.Place)
	bad(k.most == 0 && len(s.Options) > 0, "options are for places that rent browsers, and %s does not", s.Place)
	return errors.Join(problems...)
}

// keyMark stands for the key in a URL.
const keyMark = "{key}"

// Variable is the variable of the environment whose value is the key of a place; "" where it needs none.
func (s Settings) Variable() string {
	return cmp.Or(s.KeyEnv, kinds[s.Place].variable)
}

// Keys are the variables of all places that need a key, and of the one that the settings name.
func (s Settings) Keys() (all []provider.Key) {
	for _, name := range Names() {
		at := Settings{Place: name}
		if name == s.Place {
			at = s
		}
		if at.Variable() == "" || kinds[name].keyless && name != s.Place {
			continue
		}
		key := provider.Key{Toolset: "browser", Service: name, Variable: at.Variable(), Use: "browser: {place: " + name + "}"}
		if !kinds[name].keyless {
			key.Try = at.try
		}
		all = append(all, key)
	}
	return all
}

// try lists the sessions.
func (s Settings) try(ctx context.Context, c provider.Config) error {
	p := connect(Config{Settings: s, Getenv: func(string) string { return c.Key }, Transport: c.Transport, Now: c.Now})
	rents, ok := p.service.(interface{ list(context.Context) error })
	if !ok {
		return source.Errorf(source.Operator, source.Unsupported, "%s has no list of browsers", s.Place)
	}
	return rents.list(ctx)
}

// recorded is what a sweep needs: all but the options, without a secret.
func (s Settings) recorded() map[string]string {
	return map[string]string{"place": s.Place, "url": s.URL, "api_key_env": s.KeyEnv}
}
