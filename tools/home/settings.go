package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Settings say which home the tools act on, as in the run file.
type Settings struct {
	Mode         string   `yaml:"mode,omitempty" flag:"home-mode" experiment:"given"`                // Simulated or Live; default Live with a url
	URL          string   `yaml:"url,omitempty" flag:"home-url" experiment:"given"`                  // of a Home Assistant
	TokenEnv     string   `yaml:"token_env,omitempty" flag:"home-token-env" experiment:"no"`         // default HASS_TOKEN
	AllowPrivate []string `yaml:"allow_private,omitempty" flag:"home-allow-private" experiment:"no"` // addresses and names outside of the public web
}

// The homes.
const (
	Simulated = "simulated" // the one that comes along, in memory, for each episode
	Live      = "live"      // a Home Assistant
)

// Live reports whether the home is a real one.
func (s Settings) Live() bool { return s.Mode == Live || s.Mode == "" && s.URL != "" }

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("home: "+format, args...))
		}
	}
	bad(s.Mode != "" && s.Mode != Simulated && s.Mode != Live, "unknown mode %q (have %s, %s)", s.Mode, Simulated, Live)
	bad(s.Mode == Live && s.URL == "", "mode live needs a url, such as http://192.168.1.5:8123")
	bad(!s.Live() && (s.TokenEnv != "" || len(s.AllowPrivate) > 0), "token_env and allow_private are for a real home: give its url too")
	return errors.Join(problems...)
}

// Outside says which home the tools act on; "" for the one that comes along.
func (s Settings) Outside() (toolset, where, version string) {
	if !s.Live() {
		return "", "", ""
	}
	return "homeassistant", "home", s.URL
}

// Keys is the variable with the key of a home.
func (s Settings) Keys() []provider.Key {
	key := provider.Key{
		Toolset: "homeassistant", Service: "Home Assistant", Variable: cmp.Or(s.TokenEnv, usualToken),
		Use: "{home: {url: VALUE, allow_private: [HOST]}, play: {durable_turns: true}}", Ask: "Its URL, such as http://192.168.1.5:8123",
	}
	if s.Live() {
		key.Try = s.try
	}
	return []provider.Key{key}
}

// try asks whether the API runs.
func (s Settings) try(ctx context.Context, c provider.Config) error {
	h, err := Open(Config{Settings: s, Getenv: func(string) string { return c.Key }, Now: c.Now})
	if err != nil {
		return source.Errorf(source.Operator, source.Malformed, "%v", err)
	}
	defer h.Close()
	_, err = h.client.Send(ctx, provider.Request{Method: http.MethodGet, Path: "/api/"})
	return err
}

const usualToken = "HASS_TOKEN"

// Variable is the variable with the key of a real home; "" without one.
func (s Settings) Variable() string {
	if !s.Live() {
		return ""
	}
	return cmp.Or(s.TokenEnv, usualToken)
}
