package run

import (
	"net/http"
	"os"
	"time"

	"trajgen/tools/browser"
	"trajgen/tools/browser/place"
)

// OpenBrowsers opens what the browsers of episodes have in common. Nothing is asked of a place.
func OpenBrowsers(s browser.Settings) (shared browser.Shared, closer func() error, err error) {
	shared = browser.Shared{Settings: s, Pool: browser.NewPool(s.Pool)}
	if s.Place == "" {
		return shared, func() error { return nil }, nil
	}
	dir, err := usableStateDir()
	if err != nil {
		return shared, nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	shared.Place, err = place.Open(place.Config{
		Settings: s.Elsewhere(), Getenv: os.Getenv, Transport: transport, Now: time.Now, StateDir: dir,
	})
	if err != nil {
		return shared, nil, err
	}
	if shared.Place.Alone() {
		shared.Pool = browser.NewPool(1)
	}
	return shared, func() error {
		defer transport.CloseIdleConnections()
		return shared.Place.Close()
	}, nil
}
