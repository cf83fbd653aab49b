// Package place opens browsers elsewhere than in the sandbox of an episode: at an endpoint or server of the operator, or rented
// from a provider, one file for each.
package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"trajgen/sandbox"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Config says what is opened.
type Config struct {
	Settings
	Getenv    func(string) string
	Transport http.RoundTripper
	Now       func() time.Time
	StateDir  string // where sandboxes have their state, so that one sweep ends both
}

// Place is where browsers are opened. Its methods may be called from many goroutines.
type Place struct {
	config  Config
	kind    kind
	key     string
	client  *provider.Client
	service service
	list    *sandbox.Lease // of rented sessions; nil where nothing is rented
}

// kind is how a place is asked.
type kind struct {
	variable string // of the environment, with the key
	keyless  bool   // it may be asked without a key
	base     string // "" where each has its own
	socket   bool   // its address may be that of a web socket
	most     int    // minutes that a session may live; 0 where none is rented
	open     func(*Place) service
}

var kinds = map[string]kind{
	"cdp":         cdpKind,
	"browserbase": browserbaseKind,
	"browser-use": browserUseKind,
	"steel":       steelKind,
	"firecrawl":   firecrawlKind,
	"camofox":     camofoxKind,
}

func (k kind) schemes() []string {
	if k.socket {
		return []string{"http", "https", "ws", "wss"}
	}
	return []string{"http", "https"}
}

// service makes sessions, each a browser of its own. Errors are those of provider.Client.
type service interface {
	// create makes a session. The name is ours, a UUID that no other session has.
	create(ctx context.Context, name string) (session, error)
	// find returns the ids of sessions that were made by a name, as far as the service can tell, or that may have been.
	find(ctx context.Context, name string) ([]string, error)
	// release ends a session. One that has ended is not an error.
	release(ctx context.Context, id string) error
}

// session is what a service made.
type session struct {
	id     string
	socket string // address of the browser's CDP: of its web socket, or of a server that tells that address
	shared bool
	tab    *Tab
}

// Open opens the place that the settings name. Nothing is asked of it.
func Open(c Config) (*Place, error) {
	if c.Transport == nil || c.Now == nil {
		panic("place: a Transport and a clock are needed")
	}
	if err := c.Validate(""); err != nil {
		return nil, err
	}
	p := connect(c)
	if p.key == "" && (!p.kind.keyless || c.KeyEnv != "") && (c.URL == "" || c.KeyEnv != "") { // a server of one's own may want none
		return nil, fmt.Errorf("browser: place %s needs a key: set %s", c.Place, c.Variable())
	}
	if p.kind.socket { // nothing is made there
		return p, nil
	}
	var err error
	p.list, err = sandbox.OpenLease(c.StateDir, leased, c.recorded())
	return p, err
}

// connect makes a Place without a list.
func connect(c Config) *Place {
	k := kinds[c.Place]
	p := &Place{config: c, kind: k}
	if variable := c.Variable(); variable != "" {
		p.key = c.Getenv(variable)
	}
	p.client = provider.NewClient(provider.ClientConfig{Variable: c.Variable(), Config: provider.Config{
		Name: c.Place, BaseURL: cmp.Or(c.URL, k.base), Key: p.key, Transport: c.Transport, Now: c.Now,
	}})
	p.service = k.open(p)
	return p
}

// Remote is a browser of an episode.
type Remote struct {
	Provider string
	ID       string // of the session there; "" for none
	Socket   string // address of the browser's web socket, which may have the key in it; "" where Tab is set
	Shared   bool   // others use the browser: the episode needs a context of its own in it
	Tab      *Tab   // of a place that does not speak CDP

	place *Place
}

const (
	pending     = "new-" // before the name of a session whose id is not known yet
	releaseTime = 20 * time.Second
)

// Open opens a browser. It is released by Close alone. An error is a *source.Error unless ctx has ended or the list is not
// written.
func (p *Place) Open(ctx context.Context) (*Remote, error) {
	name := uuid.NewString()
	if err := p.add(pending + name); err != nil {
		return nil, err
	}
	s, err := p.service.create(ctx, name)
	if err != nil {
		return nil, p.unmade(name, err)
	}
	r := &Remote{Provider: p.config.Place, ID: s.id, Shared: s.shared, Tab: s.tab, place: p}
	if err := errors.Join(p.add(s.id), p.remove(pending+name)); err != nil {
		return nil, errors.Join(fmt.Errorf("browser: write down a session of %s: %w", p.config.Place, err), r.Close())
	}
	if r.Tab == nil {
		if r.Socket, err = p.socket(ctx, s.socket); err != nil {
			return nil, errors.Join(ours(err), r.Close())
		}
	}
	return r, nil
}

// ours is an error about a session: the agent that wants a browser has no part in it.
func ours(err error) error {
	if failed, ok := errors.AsType[*source.Error](err); ok && failed.Blame == source.Agent {
		return source.Errorf(source.Operator, failed.Class, "%s", failed.Message)
	}
	return err
}

// unmade is the error of a request for a session, which it may have made all the same unless it was refused. That is ended; what
// cannot be ended now stays on the list.
func (p *Place) unmade(name string, err error) error {
	failed, ok := errors.AsType[*source.Error](err)
	if ok && failed.Blame != source.Outage {
		return errors.Join(ours(err), p.remove(pending+name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	_ = p.end(ctx, []string{pending + name})
	return err
}

// Close ends the session, within a time of its own. What it cannot end is tried again when the place is closed, and by a sweep.
func (r *Remote) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if err := r.place.service.release(ctx, r.ID); err != nil {
		return fmt.Errorf("release the browser %s of %s: %w", r.ID, r.Provider, err)
	}
	return r.place.remove(r.ID)
}

// Close ends the sessions that are left.
func (p *Place) Close() error {
	if p.list == nil {
		return nil
	}
	names, err := p.list.Names()
	if err == nil && len(names) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		defer cancel()
		err = p.end(ctx, names)
	}
	if err != nil {
		return fmt.Errorf("end the browsers at %s: %w", p.config.Place, err)
	}
	return p.list.Close()
}

// Alone says that the place has one browser, which one episode at a time can have.
func (p *Place) Alone() bool { return p.kind.socket && sharedSocket(p.config.URL) }

// end ends what a list names.
func (p *Place) end(ctx context.Context, names []string) error {
	var group errgroup.Group // in which one that fails stops no other
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error {
			ids, err := []string{name}, error(nil)
			if made, ok := strings.CutPrefix(name, pending); ok {
				ids, err = p.service.find(ctx, made)
			}
			for _, id := range ids {
				err = errors.Join(err, p.service.release(ctx, id))
			}
			if err != nil {
				return err
			}
			return p.remove(name)
		})
	}
	return group.Wait()
}

func (p *Place) add(name string) error {
	if p.list == nil {
		return nil
	}
	return p.list.Add(name)
}

func (p *Place) remove(name string) error {
	if p.list == nil {
		return nil
	}
	return p.list.Remove(name)
}

// leased is the kind of our lists.
const leased = "browser"

func init() { sandbox.RegisterEnder(leased, sweep) }

// sweep ends what a dead runner rented. Keys are never on disk, so it reads them from their variables.
func sweep(ctx context.Context, names []string, settings map[string]string) error {
	c := Config{
		Settings: Settings{Place: settings["place"], URL: settings["url"], KeyEnv: settings["api_key_env"]},
		Getenv:   os.Getenv, Transport: http.DefaultTransport, Now: time.Now,
	}
	if err := c.Validate(""); err != nil {
		return err
	}
	return connect(c).end(ctx, names)
}
