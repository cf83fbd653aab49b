// Package home is what the tools for a smart home act on: the home that comes along, or a Home Assistant.
package home

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/tools/home/house"
	"trajgen/tools/web/guard"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Config says what is opened.
type Config struct {
	Settings Settings
	Replayed bool // a recording answers all calls, and no home is asked
	Getenv   func(string) string
	Now      func() time.Time
}

// Home is the home of a run. All episodes share it; each attempt has a View.
type Home struct {
	settings Settings
	client   *provider.Client
	guarded  *guard.Transport // nil where no home is asked
	token    string
}

const maxAnswer = 16 << 20 // bytes

// Open opens what the settings name. Nothing is asked.
func Open(c Config) (*Home, error) {
	h := &Home{settings: c.Settings}
	if !c.Settings.Live() || c.Replayed {
		return h, nil
	}
	g, err := guard.New(guard.Config{Private: c.Settings.AllowPrivate, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	if _, err := g.Check(c.Settings.URL); err != nil {
		return nil, fmt.Errorf("home: %w; name what may be reached outside of the public web in home: {allow_private: [...]}", err)
	}
	env := c.Settings.Variable()
	if h.token = c.Getenv(env); h.token == "" {
		return nil, fmt.Errorf("home: the key is missing: set %s to a long-lived access token", env)
	}
	h.guarded = g.Transport()
	h.client = provider.NewClient(provider.ClientConfig{
		Variable: env, Auth: "Authorization:Bearer ", Most: maxAnswer, Judge: judge, Config: provider.Config{
			Name: "the home", BaseURL: c.Settings.URL, Key: h.token, Transport: h.guarded, Now: c.Now,
		},
	})
	return h, nil
}

// NotFound is the class of an entity or a service that the home does not have.
const NotFound = "not_found"

// judge knows what a Home Assistant means by its statuses.
func judge(status int, body []byte) *source.Error {
	var said struct{ Message string }
	_ = json.Unmarshal(body, &said) // where it says anything
	switch status {
	case http.StatusNotFound:
		return source.Errorf(source.Agent, NotFound, "the home has no such entity")
	case http.StatusBadRequest:
		return source.Errorf(source.Agent, "bad_call", "the home refuses the call: %.300s", strings.ToValidUTF8(said.Message, ""))
	}
	return nil
}

// Close ends the connections that are kept.
func (h *Home) Close() error {
	if h.guarded != nil {
		h.guarded.CloseIdleConnections()
	}
	return nil
}

// View is the home of one attempt. Its methods may be called from many goroutines; a *source.Error says why the home did not answer.
type View struct {
	*Home
	house func() (*house.House, error) // nil for a real home; made at the first use, as most episodes have none
	ask   model.Ask
}

// View is the home of an attempt, with what its task says of the one that comes along.
func (h *Home) View(what json.RawMessage, ask model.Ask) *View {
	v := &View{Home: h, ask: ask}
	if !h.settings.Live() {
		v.house = sync.OnceValues(func() (*house.House, error) { return house.Open(what) })
	}
	return v
}

// Join gives a subagent the home that is among its parent's services.
func (v *View) Join(services []any) {
	for _, service := range services {
		if of, ok := service.(*View); ok {
			v.house = of.house
		}
	}
}

// Mode is where the home is.
func (v *View) Mode() string {
	if v.house != nil {
		return Simulated
	}
	return Live
}

// States lists the entities by name.
func (v *View) States(ctx context.Context) (all []house.State, err error) {
	if v.house != nil {
		h, err := v.house()
		if err != nil {
			return nil, err
		}
		return h.States(), nil
	}
	err = v.get(ctx, "/api/states", &all)
	return all, err
}

// State finds an entity.
func (v *View) State(ctx context.Context, id string) (s house.State, err error) {
	if v.house == nil {
		err = v.get(ctx, "/api/states/"+id, &s)
		return s, err
	}
	h, err := v.house()
	if err != nil {
		return s, err
	}
	s, ok := h.State(id)
	if !ok {
		return s, source.Errorf(source.Agent, NotFound, "the home has no such entity")
	}
	return s, nil
}

// Services lists what can be called, by domain.
func (v *View) Services(ctx context.Context) (all []house.Domain, err error) {
	if v.house != nil {
		return house.Services(), nil
	}
	err = v.get(ctx, "/api/services", &all)
	return all, err
}

// Areas are the areas of entities.
func (v *View) Areas(ctx context.Context) (areas map[string]string, err error) {
	if v.house != nil {
		h, err := v.house()
		if err != nil {
			return nil, err
		}
		return h.Areas(), nil
	}
	err = source.Keep(v.ask, record.Home, "areas", &areas, func() (err error) {
		areas, err = v.registries(ctx)
		return err
	})
	return areas, err
}

// Called is what came of a call.
type Called struct {
	States   []house.State   `json:"changed_states"`
	Response json.RawMessage `json:"service_response,omitempty"`
}

// Call calls a service. key distinguishes calls of the attempt: where its record says that one was begun and not how it ended, it is
// not made again.
func (v *View) Call(ctx context.Context, key, domain, service string, data map[string]any) (Called, error) {
	if v.house != nil {
		h, err := v.house()
		if err != nil {
			return Called{}, err
		}
		states, err := h.Call(domain, service, data)
		if err != nil {
			err = source.Errorf(source.Agent, "bad_call", "the home refuses the call: %v", err)
		}
		return Called{States: states}, err
	}
	var did Called
	unknown := source.Errorf(source.Agent, "unknown_end",
		"the call was made before an interruption, and whether it had an effect is not known: look at the states")
	err := source.Once(v.ask, record.Home, fmt.Sprintf("%s %s.%s", key, domain, service), &did, unknown, func() (err error) {
		did, err = v.call(ctx, fmt.Sprintf("/api/services/%s/%s", domain, service), data)
		return err
	})
	return did, err
}

// call makes a call. One that has something to say must be asked for it, which the first answer says.
func (v *View) call(ctx context.Context, path string, data map[string]any) (did Called, err error) {
	ctx, cancel := patience(ctx)
	defer cancel()
	r := provider.Request{Method: http.MethodPost, Path: path, JSON: data, Costly: true}
	body, err := v.client.Send(ctx, r)
	if refused, ok := errors.AsType[*source.Error](err); ok && strings.Contains(refused.Message, "return_response") {
		r.Path += "?return_response"
		body, err = v.client.Send(ctx, r)
	}
	if err != nil {
		return did, err
	}
	into := any(&did.States)
	if strings.HasPrefix(string(body), "{") {
		into = &did
	}
	if err := json.Unmarshal(body, into); err != nil {
		return did, v.client.Errorf(source.Outage, source.Malformed, "its answer cannot be read")
	}
	return did, nil
}

const callTime = 15 * time.Second // of a request, with its tries

func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callTime, source.Errorf(source.Outage, source.Unavailable, "the home does not answer within %s", callTime))
}

// get asks for a list or an entity.
func (v *View) get(ctx context.Context, path string, answer any) error {
	return source.Keep(v.ask, record.Home, path, answer, func() error {
		ctx, cancel := patience(ctx)
		defer cancel()
		return v.client.Ask(ctx, provider.Request{Method: http.MethodGet, Path: path}, answer)
	})
}

// HomeState is what the home holds, for a verifier.
func (v *View) HomeState() (json.RawMessage, error) {
	if v.house == nil {
		return nil, errors.New("a real home is not judged")
	}
	h, err := v.house()
	if err != nil {
		return nil, err
	}
	return h.Judged()
}
