package browser

import (
	"errors"
	"fmt"
	"path"

	"trajgen/tools/browser/place"
	"trajgen/tools/web/provider"
)

// Settings say how episodes get a browser, as in the run file.
type Settings struct {
	Pool    int            `yaml:"pool" flag:"browser-pool" experiment:"no" help:"browsers that may live at once (default: as many as episodes)"`
	Program string         `yaml:"program" flag:"browser-program" experiment:"given" help:"path of Chromium or its headless shell in sandboxes (default: the first that is found)"`
	Idle    int            `yaml:"idle" flag:"browser-idle" experiment:"no" help:"seconds after which a browser that is not used ends (default 120)"`
	Place   string         `yaml:"place" flag:"browser-place" experiment:"given" help:"where browsers run, on the live web alone: cdp (an endpoint of the Chrome DevTools Protocol), browserbase, browser-use, steel, firecrawl or camofox (default: in the sandboxes of the episodes)"`
	URL     string         `yaml:"url" flag:"browser-url" experiment:"no" help:"with a place: its endpoint or server, in which {key} stands for the key (default: the provider's own)"`
	KeyEnv  string         `yaml:"api_key_env" flag:"browser-api-key-env" experiment:"no" help:"with a place: environment variable with the key (default: the provider's usual one)"`
	Minutes int            `yaml:"minutes" flag:"browser-minutes" experiment:"no" help:"with a place that rents browsers: how long one lives at most, should its end be lost (default 15)"`
	Options map[string]any `yaml:"options,omitempty" flag:"browser-options" experiment:"given"` // with a place that rents browsers: further fields of the request for one
}

const (
	defaultIdle = 120
	leastIdle   = 30
)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("browser: "+format, args...))
		}
	}
	bad(s.Pool < 0, "pool is %d; 0 for no limit, or how many browsers may live at once", s.Pool)
	bad(s.Idle != 0 && s.Idle < leastIdle, "idle is %d; at least %d seconds", s.Idle, leastIdle)
	bad(s.Program != "" && !path.IsAbs(s.Program), "program %q is not an absolute path in the sandbox", s.Program)
	bad(s.Place == "" && (s.URL != "" || s.KeyEnv != "" || s.Minutes != 0 || len(s.Options) > 0), "url, api_key_env, minutes and options are for a place")
	bad(s.Place != "" && s.Program != "", "program is for browsers in sandboxes, and place is %s", s.Place)
	return errors.Join(problems...)
}

// ValidateIn says what is wrong with the place in a web mode.
func (s Settings) ValidateIn(webMode string) error {
	if s.Place == "" {
		return nil
	}
	return s.Elsewhere().Validate(webMode)
}

// Elsewhere are the settings of the place.
func (s Settings) Elsewhere() place.Settings {
	return place.Settings{Place: s.Place, URL: s.URL, KeyEnv: s.KeyEnv, Minutes: s.Minutes, Options: s.Options}
}

// Keys are the variables of places.
func (s Settings) Keys() []provider.Key { return s.Elsewhere().Keys() }

// Version names how the browser asks, for recordings.
const Version = "browser 1"
