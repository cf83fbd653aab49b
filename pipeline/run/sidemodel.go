package run

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"trajgen/pipeline/model"
)

// sideModel is a model beside the agent's: it plays a user, judges commands or writes summaries. It uses the agent's endpoint,
// unless another is named.
type sideModel struct {
	role                     string // on a tape
	name, baseURL, apiKeyEnv string // keys of the run file
}

// open opens the model with the settings of cfg, except name and endpoint.
func (s sideModel) open(m *models, cfg model.Config) (*model.Client, error) {
	client, err := s.connect(m, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s model: %w", s.role, err)
	}
	m.probes = append(m.probes, func(ctx context.Context) error {
		if err := client.Probe(ctx); err != nil {
			return fmt.Errorf("%s model: %w", s.role, err)
		}
		return nil
	})
	return client, nil
}

func (s sideModel) connect(m *models, cfg model.Config) (*model.Client, error) {
	f := m.File
	cfg.Name, cfg.BaseURL = s.name, cmp.Or(s.baseURL, f.baseURL())
	cfg.Proxy, cfg.Concurrency, cfg.Processors, cfg.Logger = http.ProxyFromEnvironment, f.Play.Workers, m.processors, m.Logger
	// The agent's key is only sent to the agent's endpoint.
	key := s.apiKeyEnv
	if key == "" && s.baseURL == "" {
		key = f.Model.APIKeyEnv
	}
	var err error
	if cfg.APIKey, err = m.apiKey(key, cfg.BaseURL); err != nil {
		return nil, err
	}
	m.thread(&cfg, s.role)
	m.pay(&cfg)
	client, err := model.Open(cfg)
	if err != nil {
		return nil, err
	}
	m.closers = append(m.closers, client.Close)
	return client, nil
}
