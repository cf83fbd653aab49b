package run

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/place"
)

// openBrowsers opens what the browsers of episodes have in common. Nothing is asked of a place.
func openBrowsers(s browser.Settings) (shared browser.Shared, closer func() error, err error) {
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

// mayBrowse notes that episodes may have a toolset with a browser.
func (o *opened) mayBrowse(tools *registry.Toolset) {
	o.browses = o.browses || tools.Memory() >= browser.Memory
}

// browse finds out what browsers in sandboxes mean for the run: they are started in one way, and need memory.
func (e *Experiment) browse(context.Context) error {
	if !e.browses || e.File.Browser.Place != "" {
		return nil
	}
	e.parts.Browser = browser.Flags()
	most := e.File.Play.Workers
	if pool := e.File.Browser.Pool; pool > 0 {
		most = min(most, pool)
	}
	if warning := TooFewBytes(most, FreeMemory()); warning != "" {
		fmt.Fprintln(e.warnings, warning)
	}
	return nil
}

// TooFewBytes says that memory does not suffice for so many browsers with a page each; "" if it does, or is not known.
func TooFewBytes(browsers int, free uint64) string {
	if need := uint64(browsers) * browser.PageMemory; free > 0 && need > free {
		return fmt.Sprintf("%d browsers at once need %d MB of memory, and %d MB are there: what is too much is killed "+
			"(--browser-pool N lets fewer live at once)", browsers, need>>20, free>>20)
	}
	return ""
}
