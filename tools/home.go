package tools

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"trajgen/registry"
	"trajgen/tools/home"
	"trajgen/tools/web/source"
)

const homeTimeout = 40 * time.Second // of a call; each request to a home has its own bound

// The forms of names, which stand in addresses.
var (
	entityForm  = regexp.MustCompile(`^[a-z_][a-z0-9_]*\.[a-z0-9_]+$`)
	serviceForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// homeTool is the definition of a tool that acts on the home.
func homeTool(name, description string) registry.Definition {
	return registry.Definition{
		Name: name, Toolset: "homeassistant", NoSandbox: true, Untrusted: "home", Timeout: homeTimeout, Description: description,
	}
}

// untouched is the Access of calls that only look.
func untouched(json.RawMessage) registry.Access { return registry.Access{} }

// homeAbout is what a call's row says of the home.
type homeAbout struct {
	Mode     string     `json:"mode"`
	Affected []affected `json:"affected,omitempty"`
	Threats  []string   `json:"threats,omitempty"`
}

// homeView is the episode's home.
func homeView(env *registry.Env) (*home.View, *homeAbout, error) {
	view, ok := registry.Service[*home.View](env.Session)
	if !ok {
		return nil, nil, registry.Failf("no_home", "this episode has no home")
	}
	about := &homeAbout{Mode: view.Mode()}
	env.Source = about
	return view, about, nil
}

// sourceFailure is what an error of what is outside is for the model.
func sourceFailure(err error) error {
	if _, ok := errors.AsType[*source.Error](err); !ok {
		return err
	}
	return webFailure(nil, err)
}

// badEntity refuses what is not a name of an entity.
func badEntity(id string) error {
	return registry.Failf("bad_entity", "entity_id %.100q is not a name such as light.kitchen: lower-case letters, digits and _, with a domain", id)
}
