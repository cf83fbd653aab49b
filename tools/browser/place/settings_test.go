package place_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"trajgen/tools/browser/place"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		give place.Settings
		mode string
		want string // "" for nothing wrong
	}{
		{"cdp", place.Settings{Place: "cdp", URL: "http://127.0.0.1:9222"}, "", ""},
		{"cdp by socket", place.Settings{Place: "cdp", URL: "wss://b.test/?token={key}", KeyEnv: "TOKEN"}, "live", ""},
		{"steel", place.Settings{Place: "steel"}, "", ""},
		{"own steel", place.Settings{Place: "steel", URL: "http://127.0.0.1:3000", Minutes: 1440}, "", ""},
		{"camofox", place.Settings{Place: "camofox"}, "", ""},
		{"unknown", place.Settings{Place: "chrome"}, "", `unknown place "chrome" (have browser-use, browserbase, camofox, cdp, firecrawl, steel)`},
		{"no endpoint", place.Settings{Place: "cdp"}, "", "place cdp needs url, such as http://127.0.0.1:9222"},
		{"file", place.Settings{Place: "cdp", URL: "file:///etc"}, "", "begins with http:// or https:// or ws:// or wss://"},
		{"socket of a server", place.Settings{Place: "steel", URL: "wss://b.test"}, "", "begins with http:// or https://"},
		{"key of nothing", place.Settings{Place: "cdp", URL: "wss://b.test/{key}"}, "", "api_key_env does not say"},
		{"too long", place.Settings{Place: "firecrawl", Minutes: 61}, "", "minutes is 61; from 1 to 60 at firecrawl"},
		{"before now", place.Settings{Place: "firecrawl", Minutes: -1}, "", "minutes is -1; from 1 to 60 at firecrawl"},
		{"minutes of an endpoint", place.Settings{Place: "cdp", URL: "http://h", Minutes: 1}, "", "minutes is for places that rent"},
		{"options of a server", place.Settings{Place: "camofox", Options: map[string]any{"a": 1}}, "", "options are for places that rent"},
		{"replayed", place.Settings{Place: "steel"}, "replay", "place steel is of the live web alone"},
		{"recorded", place.Settings{Place: "cdp", URL: "http://h"}, "record", "leave out the place, or the web mode record"},
		{"of a corpus", place.Settings{Place: "camofox"}, "corpus", "neither recorded nor replayed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.give.Validate(tt.mode); (err == nil) != (tt.want == "") || !strings.Contains(fmt.Sprint(err), tt.want) && err != nil {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	tests := []struct {
		name string
		give place.Settings
		want string
	}{
		{"its own", place.Settings{Place: "steel"}, "place steel needs a key: set STEEL_API_KEY"},
		{"another one", place.Settings{Place: "steel", URL: "http://127.0.0.1:1", KeyEnv: "OTHER"}, "place steel needs a key: set OTHER"},
		{"of an endpoint", place.Settings{Place: "cdp", URL: "ws://h/{key}", KeyEnv: "OTHER"}, "place cdp needs a key: set OTHER"},
		{"none for an own server", place.Settings{Place: "steel", URL: "http://127.0.0.1:1"}, ""},
		{"none for an endpoint", place.Settings{Place: "cdp", URL: "http://127.0.0.1:1"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := place.Open(place.Config{
				Settings: tt.give, Getenv: func(string) string { return "" }, Transport: &http.Transport{}, Now: time.Now, StateDir: t.TempDir(),
			})
			if err == nil {
				err = p.Close()
			}
			if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
