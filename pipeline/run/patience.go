package run

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"trajgen/pipeline/model"
)

// openFallbacks adds the fallback models, which share the first model's settings.
func (m *models) openFallbacks(first *model.Client, settings model.Config) error {
	var others []*model.Client
	for _, next := range m.File.Model.Fallbacks {
		client, err := m.openFallback(next, settings)
		if err != nil {
			return fmt.Errorf("fallback model %s: %w", next.Model, err)
		}
		others = append(others, client)
	}
	if len(others) > 0 {
		m.fallen = model.WithFallbacks(first, others...)
	}
	return nil
}

func (m *models) openFallback(next model.Fallback, settings model.Config) (*model.Client, error) {
	f := m.File
	cfg := settings
	cfg.Name, cfg.Endpoints, cfg.BaseURL = next.Model, nil, next.BaseURL
	if next.BaseURL == "" {
		cfg.BaseURL = baseURL(f.Model)
	}
	// An endpoint's keys and headers must not go to another one.
	if cfg.BaseURL != baseURL(f.Model) {
		cfg.Headers = nil
	} else if next.APIKeyEnv == "" {
		return m.openClient(cfg)
	}
	var err error
	if cfg.APIKey, err = m.apiKey(next.APIKeyEnv, cfg.BaseURL); err != nil {
		return nil, err
	}
	return m.openClient(cfg)
}

// outages records which endpoints do not answer, and passes changes to the display. It is safe for concurrent use.
type outages struct {
	mu   sync.Mutex // guards what follows
	open []model.Outage
	show func([]model.Outage, model.Outage)
}

// tell takes an outage's change from a client.
func (o *outages) tell(news model.Outage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.DeleteFunc(o.open, func(known model.Outage) bool { return known.Endpoint == news.Endpoint })
	if !news.Over {
		o.open = append(o.open, news)
	}
	slices.SortFunc(o.open, func(a, b model.Outage) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	if o.show != nil {
		o.show(slices.Clone(o.open), news)
	}
}

// shownBy sets the function that is called with each change of the outages.
func (o *outages) shownBy(show func(open []model.Outage, news model.Outage)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.show = show
}

// Paused reports whether none of the agent's models answers.
func (m *models) Paused() bool {
	return !slices.ContainsFunc(m.clients, func(c *model.Client) bool { return !c.Paused() })
}
