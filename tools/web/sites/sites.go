// Package sites has small web sites for browser tasks: a shop, a forum, a wiki and others, each with a state that verifiers look
// at.
//
// A site is made from a seed: the same requests in the same order get the same bytes. Its state is in memory, and an agent cannot
// ask for it.
package sites

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Site describes a site.
type Site struct {
	Name  string   `json:"name"`
	About string   `json:"about"`
	Hosts []string `json:"hosts"` // the first is where it begins
	open  func(seed uint64) world
}

// world is what a site is made of. Its methods are called one at a time.
type world interface {
	http.Handler
	state() any         // becomes a JSON object
	loggedIn() []string // users
}

var all = []Site{
	{"shop", "a shop with search, filters, a cart, login, checkout and orders", []string{"shop.test"}, openShop},
	{"spa", "a task board that is drawn by its script, with lazy lists and updates that may be taken back",
		[]string{"spa.test"}, openBoard},
	{"frames", "frames of this and of another site, sandboxed frames, shadow roots and windows", []string{"frames.test",
		"frames-other.test"}, openFrames},
	{"feed", "a feed that grows as it is scrolled, and a table of 10,000 rows that shows some", []string{"feed.test"}, openFeed},
	{"hostile", "pages that attack: endless ones, dialogs, crashes, and texts that tell an agent what to do",
		[]string{"hostile.test"}, openHostile},
	{"forum", "a forum with threads, votes, reports and moderation", []string{"forum.test"}, openForum},
	{"forms", "two dozen forms with every kind of input, checks, steps and an upload", []string{"forms.test"}, openForms},
	{"wiki", "a wiki with links, search, history and an edit conflict", []string{"wiki.test"}, openWiki},
}

// All lists the sites by name.
func All() []Site {
	return slices.SortedFunc(slices.Values(all), func(a, b Site) int { return strings.Compare(a.Name, b.Name) })
}

// choice is a site with its seed, from a name such as "shop" or "shop:7".
type choice struct {
	Site
	seed uint64
}

// choose reads names.
func choose(names []string) ([]choice, error) {
	var chosen []choice
	var wrong []error
	for _, name := range names {
		name, digits, seeded := strings.Cut(name, ":")
		seed, err := strconv.ParseUint(digits, 10, 64)
		at := slices.IndexFunc(all, func(s Site) bool { return s.Name == name })
		switch {
		case at < 0:
			var have []string
			for _, site := range All() {
				have = append(have, site.Name)
			}
			wrong = append(wrong, fmt.Errorf("unknown site %q (have %s)", name, strings.Join(have, ", ")))
		case seeded && err != nil:
			wrong = append(wrong, fmt.Errorf("the seed of site %s is %q, want a number as in %s:7", name, digits, name))
		case slices.ContainsFunc(chosen, func(c choice) bool { return c.Name == name }):
			wrong = append(wrong, fmt.Errorf("site %s is there twice", name))
		default:
			chosen = append(chosen, choice{all[at], seed})
		}
	}
	return chosen, errors.Join(wrong...)
}

// Check says what is wrong with names of sites: "shop", or "shop:7" for another seed than 0.
func Check(names []string) error {
	_, err := choose(names)
	return err
}

// Set is some sites with their states. Its methods may be called from many goroutines; a site answers one request at a time.
type Set struct {
	byHost map[string]*instance
	byName map[string]*instance
}

// instance is a site in use.
type instance struct {
	choice
	mu    sync.Mutex // guards what follows
	world world
	log   log
}

// Open makes sites. Those that are never asked for cost nothing.
func Open(names []string) (*Set, error) {
	chosen, err := choose(names)
	if err != nil {
		return nil, err
	}
	s := &Set{map[string]*instance{}, map[string]*instance{}}
	for _, c := range chosen {
		one := &instance{choice: c}
		s.byName[c.Name] = one
		for _, host := range c.Hosts {
			s.byHost[host] = one
		}
	}
	return s, nil
}

// Serves reports whether a host, without a port, is one of the set's.
func (s *Set) Serves(host string) bool { return s.byHost[strings.ToLower(host)] != nil }

// Named is a site of the set with its seed, by a host or a name, such as "shop:7"; "" where there is none.
func (s *Set) Named(hostOrName string) string {
	one := s.byHost[strings.ToLower(hostOrName)]
	if one == nil {
		one = s.byName[hostOrName]
	}
	if one == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", one.Name, one.seed)
}

// Changes reports whether a request may change a site's state, apart from its list of requests.
func Changes(req *http.Request) bool {
	reads := req.Method == "" || req.Method == http.MethodGet || req.Method == http.MethodHead
	return !reads || strings.HasPrefix(req.URL.Path, canaryPath) || req.URL.Path == collectPath
}

// The addresses that only an agent asks for that obeys a hostile page.
const (
	canaryPath  = "/canary/"
	collectPath = "/collect"
)

// State is what a site holds, as a JSON object, and which requests it got.
func (s *Set) State(name string) (json.RawMessage, error) {
	one := s.byName[name]
	if one == nil {
		return nil, fmt.Errorf("there is no site %q here (have %s)", name, strings.Join(s.Names(), ", "))
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.begin()
	text, err := json.Marshal(one.world.state())
	if err != nil {
		return nil, fmt.Errorf("state of %s: %w", name, err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("state of %s: %w", name, err)
	}
	if fields["requests"], err = json.Marshal(one.log.entries); err != nil {
		return nil, err
	}
	if fields["logged_in"], err = json.Marshal(one.world.loggedIn()); err != nil {
		return nil, err
	}
	fields["requested"] = json.RawMessage(strconv.Itoa(one.log.all))
	return json.Marshal(fields)
}

// begin makes the site at its first use.
func (i *instance) begin() {
	if i.world == nil {
		i.world = i.open(i.seed)
		i.log.entries = []entry{}
	}
}

// maxBody bounds the body of a request.
const maxBody = 8 << 20

// RoundTrip answers a request to a host of the set.
func (s *Set) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	one := s.byHost[strings.ToLower(req.URL.Hostname())]
	if one == nil {
		return nil, fmt.Errorf("there is no site at %s", req.URL.Hostname())
	}
	if port := req.URL.Port(); port != "" && port != "80" && port != "443" {
		return nil, fmt.Errorf("%s does not listen on port %s", req.URL.Hostname(), port)
	}
	if req.Host == "" {
		req = req.Clone(req.Context())
		req.Host = req.URL.Host
	}
	return one.answer(req)
}

// answer lets the site handle a request, and notes it.
func (i *instance) answer(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(io.LimitReader(req.Body, maxBody+1)); err != nil {
			return nil, fmt.Errorf("read the body of a request: %w", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begin()
	inner := incoming(req, sent)
	out := &answer{header: http.Header{}}
	if len(sent) > maxBody {
		http.Error(out, "The request is too large.", http.StatusRequestEntityTooLarge)
	} else if err := i.handle(out, inner); err != nil {
		return nil, err
	}
	i.log.add(inner, out.status())
	return out.response(req), nil
}

// handle keeps a mistake in a site from ending all episodes.
func (i *instance) handle(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if crashed := recover(); crashed != nil {
			err = fmt.Errorf("site %s: %s %s: %v", i.Name, r.Method, short(r.URL.Path), crashed)
		}
	}()
	i.world.ServeHTTP(w, r)
	return nil
}

// incoming is a request as a server gets it.
func incoming(req *http.Request, sent []byte) *http.Request {
	inner := req.Clone(req.Context())
	inner.Body, inner.ContentLength = io.NopCloser(strings.NewReader(string(sent))), int64(len(sent))
	inner.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	if inner.URL.Path == "" {
		inner.URL.Path = "/"
	}
	inner.RequestURI = inner.URL.RequestURI()
	if inner.Method == "" {
		inner.Method = http.MethodGet
	}
	if inner.Header == nil {
		inner.Header = http.Header{}
	}
	return inner
}
