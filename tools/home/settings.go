package home

import (
	"errors"
	"fmt"
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

// Variables are the variables whose values are keys.
func (s Settings) Variables() []string { return []string{s.Variable()} }

// Variable is the variable with the key of a real home; "" without one.
func (s Settings) Variable() string {
	switch {
	case !s.Live():
		return ""
	case s.TokenEnv != "":
		return s.TokenEnv
	}
	return "HASS_TOKEN"
}
