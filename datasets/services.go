package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// serviceKeys are the keys of a service: {"name": "db", "image": "postgres:16", "health": {"command": "pg_isready"}}.
var serviceKeys = keys[episode.Companion]{
	"name":  field(asPlain, func(s *episode.Companion) *string { return &s.Name }),
	"image": field(asPlain, func(s *episode.Companion) *string { return &s.Image }),
	"build": func(p *problems, s *episode.Companion, at string, value json.RawMessage) {
		s.Build = buildOf(p, at, value)
	},
	"entrypoint": field(asLine, func(s *episode.Companion) *[]string { return &s.Entrypoint }),
	"command":    field(asLine, func(s *episode.Companion) *[]string { return &s.Command }),
	"env": func(p *problems, s *episode.Companion, at string, value json.RawMessage) {
		s.Env = variables(p, at, value)
	},
	"cwd":  field(asPlain, func(s *episode.Companion) *string { return &s.Cwd }),
	"user": field(asPlain, func(s *episode.Companion) *string { return &s.User }),
	"files": func(p *problems, s *episode.Companion, at string, value json.RawMessage) {
		s.Files = fileMap(p, at, value, cleanRootPath)
	},
	"health": func(p *problems, s *episode.Companion, at string, value json.RawMessage) {
		s.Health = &episode.Health{}
		if healthKeys.whole(p, s.Health, at, value) && len(s.Health.Command) == 0 {
			p.addf("%s: command is missing: it succeeds once the service is well", at)
		}
	},
	"restart": field(asPlain, func(s *episode.Companion) *string { return &s.Restart }),
	"once":    field(asOnce, func(s *episode.Companion) *bool { return &s.Once }),
	"after":   field(asNames, func(s *episode.Companion) *[]string { return &s.After }),
}

// healthKeys are the keys of a health check.
var healthKeys = keys[episode.Health]{
	"command":  field(asLine, func(h *episode.Health) *[]string { return &h.Command }),
	"interval": field(asDuration, func(h *episode.Health) *time.Duration { return &h.Interval }),
	"timeout":  field(asDuration, func(h *episode.Health) *time.Duration { return &h.Timeout }),
	"start":    field(asDuration, func(h *episode.Health) *time.Duration { return &h.Start }),
	"retries":  field(asCount, func(h *episode.Health) *int { return &h.Retries }),
}

func readServices(p *problems, t *episode.Task, at string, value json.RawMessage) {
	for i, each := range p.list(at, value, "services") {
		s, at := episode.Companion{}, item(at, i)
		if serviceKeys.whole(p, &s, at, each) && (s.Image == "") == (s.Build == nil) {
			p.addf("%s: want image or build, and a name", at)
		}
		t.Services = append(t.Services, s)
	}
}

func asOnce(value json.RawMessage) (once bool, err error) {
	if json.Unmarshal(value, &once) != nil {
		err = fmt.Errorf("%s, want true or false", kindOf(value))
	}
	return once, err
}

// asLine takes a list of words, or a text for a shell.
func asLine(value json.RawMessage) ([]string, error) {
	if text, ok := asString(value); ok {
		return []string{"sh", "-c", text}, nil
	}
	items, err := elements(value)
	if err != nil {
		return nil, errors.New("want a text for a shell, or a list of words")
	}
	words := make([]string, len(items))
	for i := range items {
		if words[i], err = asPlain(items[i]); err != nil {
			return nil, err
		}
	}
	return slices.Clip(words), nil
}
