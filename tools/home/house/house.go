// Package house is a small home that comes along: rooms, devices and services with the shapes of Home Assistant, in memory.
//
// It is the same at the beginning of each episode, apart from what a task says, and the same calls have the same effects.
package house

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
)

// State is an entity as Home Assistant shows it.
type State struct {
	ID         string         `json:"entity_id"`
	State      string         `json:"state"`
	Attributes map[string]any `json:"attributes"`
	Changed    string         `json:"last_changed,omitempty"` // of a real home
	Updated    string         `json:"last_updated,omitempty"`
}

// Domain is a domain with its services.
type Domain struct {
	Domain   string             `json:"domain"`
	Services map[string]Service `json:"services"`
}

// Service is what can be called.
type Service struct {
	Description string           `json:"description"`
	Fields      map[string]Field `json:"fields,omitempty"`
}

// Field is what a service takes.
type Field struct {
	Description string `json:"description"`
}

// House is a home. Its methods may be called from many goroutines.
type House struct {
	begin map[string]State // never changed

	mu     sync.Mutex // guards what follows
	states map[string]State
	areas  map[string]string // entity → area
	calls  []call
	called int
}

// call is a call of a service, as verifiers see it.
type call struct {
	Service  string         `json:"service"`
	Entities []string       `json:"entities"`
	Data     map[string]any `json:"data"`
}

//go:embed house.yaml
var plan []byte

// entityID is the form of an entity's name.
var entityID = regexp.MustCompile(`^[a-z_][a-z0-9_]*\.[a-z0-9_]+$`)

// Open makes the home. what, which may be empty, is what a task changes of it: a JSON object of entities, each with a state, an area or
// attributes; an entity that the home does not have is added.
func Open(what json.RawMessage) (*House, error) {
	usual, err := usual()
	if err != nil {
		return nil, fmt.Errorf("read the home that comes along: %w", err)
	}
	h := &House{states: maps.Clone(usual.states), areas: maps.Clone(usual.areas)}
	if err := h.furnish(what); err != nil {
		return nil, err
	}
	h.begin = maps.Clone(h.states)
	return h, nil
}

// usual is the home without a task. Nothing changes its attributes: an entity that is changed gets others.
var usual = sync.OnceValues(func() (*House, error) {
	h := &House{states: map[string]State{}, areas: map[string]string{}}
	var rooms map[string]map[string]map[string]any
	err := yaml.Unmarshal(plan, &rooms)
	if err == nil { // numbers are as JSON has them, so that values can be compared
		err = json.Unmarshal(episode.MustJSON(rooms), &rooms)
	}
	for room, entities := range rooms {
		for id, attributes := range entities {
			state := fmt.Sprint(attributes["state"])
			delete(attributes, "state")
			h.states[id], h.areas[id] = State{ID: id, State: state, Attributes: attributes}, room
		}
	}
	return h, err
})

// furnish lays what a task says over the home.
func (h *House) furnish(what json.RawMessage) error {
	if len(what) == 0 {
		return nil
	}
	var changes map[string]struct {
		State      string         `json:"state"`
		Area       string         `json:"area"`
		Attributes map[string]any `json:"attributes"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(what)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&changes); err != nil {
		return fmt.Errorf(`want entities, each with state, area or attributes, such as {"light.attic": {"state": "off"}}: %w`, err)
	}
	var wrong []error
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		change := changes[id]
		was, known := h.states[id]
		if !entityID.MatchString(id) || !known && change.State == "" {
			wrong = append(wrong, fmt.Errorf("entity %q: want a name such as light.attic, and a state if the home does not have it", id))
			continue
		}
		made := State{ID: id, State: cmp.Or(change.State, was.State), Attributes: map[string]any{}}
		maps.Copy(made.Attributes, was.Attributes)
		maps.Copy(made.Attributes, change.Attributes)
		if _, named := made.Attributes["friendly_name"]; !named {
			_, name, _ := strings.Cut(id, ".")
			made.Attributes["friendly_name"] = strings.ReplaceAll(name, "_", " ")
		}
		h.states[id], h.areas[id] = made, cmp.Or(change.Area, h.areas[id])
	}
	return errors.Join(wrong...)
}

// States lists the entities by name.
func (h *House) States() []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []State
	for _, id := range slices.Sorted(maps.Keys(h.states)) {
		all = append(all, h.states[id])
	}
	return all
}

// State finds an entity.
func (h *House) State(id string) (State, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.states[id]
	return s, ok
}

// Areas are the areas of the entities.
func (h *House) Areas() map[string]string { return maps.Clone(h.areas) }

// Services lists what can be called, by domain.
func Services() []Domain {
	var all []Domain
	for _, domain := range slices.Sorted(maps.Keys(services)) {
		d := Domain{Domain: domain, Services: map[string]Service{}}
		for name, s := range services[domain] {
			shown := Service{Description: s.about, Fields: map[string]Field{}}
			for _, f := range s.fields {
				shown.Fields[f.name] = Field{Description: f.describe()}
			}
			d.Services[name] = shown
		}
		all = append(all, d)
	}
	return all
}

// mostCalls bounds the calls that are kept.
const mostCalls = 300

// Call calls a service with its data, entity_id and area_id among it, and returns the entities that it changed. An error says what is
// wrong with the data.
func (h *House) Call(domain, name string, data map[string]any) ([]State, error) {
	s, ok := services[domain][name]
	if !ok {
		return nil, fmt.Errorf("service %s.%s does not exist", domain, name)
	}
	own := maps.Clone(data)
	delete(own, "entity_id")
	delete(own, "area_id")
	if err := s.check(own); err != nil {
		return nil, fmt.Errorf("%s.%s: %w", domain, name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	targets, err := h.targets(domain, data)
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", domain, name, err)
	}
	after := map[string]State{}
	for _, id := range targets {
		made := h.states[id]
		made.Attributes = maps.Clone(made.Attributes)
		if err := s.apply(&made, own); err != nil { // before anything has changed
			return nil, fmt.Errorf("%s.%s: %s: %w", domain, name, id, err)
		}
		after[id] = made
	}
	changed := []State{}
	for _, id := range targets {
		if !reflect.DeepEqual(after[id], h.states[id]) {
			changed = append(changed, after[id])
		}
		h.states[id] = after[id]
	}
	if h.called++; len(h.calls) < mostCalls {
		h.calls = append(h.calls, call{domain + "." + name, targets, own})
	}
	return changed, nil
}

// targets are the entities of a domain that a call is about, sorted. As in Home Assistant, others do not count.
func (h *House) targets(domain string, data map[string]any) ([]string, error) {
	ids, err := names(data["entity_id"])
	areas, bad := names(data["area_id"])
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	if len(ids)+len(areas) == 0 {
		return nil, errors.New("it needs an entity_id")
	}
	found := []string{}
	for id := range h.states {
		its, _, _ := strings.Cut(id, ".")
		named := slices.Contains(ids, id) || slices.Contains(ids, "all") ||
			slices.ContainsFunc(areas, func(area string) bool { return SameArea(area, h.areas[id]) })
		if its == domain && named {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return found, nil
}

// SameArea compares a name of an area as people write it with the area's own: living_room is Living Room.
func SameArea(asked, area string) bool {
	return strings.EqualFold(strings.ReplaceAll(asked, "_", " "), strings.ReplaceAll(area, "_", " "))
}

// names reads a name, names with commas, or a list.
func names(value any) ([]string, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		var all []string
		for name := range strings.SplitSeq(v, ",") {
			all = append(all, strings.TrimSpace(name))
		}
		return all, nil
	case []any:
		var all []string
		for _, each := range v {
			name, ok := each.(string)
			if !ok {
				return nil, fmt.Errorf("%v is not a name", each)
			}
			all = append(all, name)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%v is not a name or a list of names", value)
}

// Judged is what verifiers look at: states and attributes by entity, which entities differ from the beginning, and the calls.
func (h *House) Judged() (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	states, attributes, changed := map[string]string{}, map[string]any{}, []string{}
	for id, s := range h.states {
		states[id], attributes[id] = s.State, s.Attributes
		if !reflect.DeepEqual(s, h.begin[id]) {
			changed = append(changed, id)
		}
	}
	slices.Sort(changed)
	return json.Marshal(map[string]any{
		"states": states, "attributes": attributes, "changed": changed, "calls": append([]call{}, h.calls...), "called": h.called,
	})
}
