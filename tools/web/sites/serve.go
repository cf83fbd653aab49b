package sites

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Handler serves the set to people, whose browsers find the hosts SITE.localhost on their own machine. With states, the state of
// a site is at /state/SITE of any other host.
func (s *Set) Handler(states bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		local, ok := strings.CutSuffix(strings.ToLower(host), ".localhost")
		if !ok {
			s.front(w, r, states)
			return
		}
		req := r.Clone(r.Context())
		req.URL.Scheme, req.URL.Host = "http", local+".test"
		resp, err := s.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // an error is that the visitor left
	})
}

// front answers where no site is meant.
func (s *Set) front(w http.ResponseWriter, r *http.Request, states bool) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/state/"); ok && states {
		state, err := s.State(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(state)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, port, _ := net.SplitHostPort(r.Host)
	for _, name := range s.Names() {
		fmt.Fprintf(w, "http://%s.localhost:%s/\n", name, port)
	}
}

// Names lists the sites of the set, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }
