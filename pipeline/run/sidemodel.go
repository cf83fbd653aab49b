package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// User is the model that answers the agent's questions.
type User struct {
	Model     string `yaml:"model" flag:"user-model" experiment:"given" help:"model that answers the agent's questions where a task has {\"user\": {\"model\": true}}"`
	BaseURL   string `yaml:"base_url" flag:"user-base-url" experiment:"no" help:"endpoint of the user model (default: base_url)"`
	APIKeyEnv string `yaml:"api_key_env" flag:"user-api-key-env" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
}

// Variables are the variables whose values are keys.
func (u User) Variables() []string { return []string{u.APIKeyEnv} }

// Validate says what is wrong with the section.
func (u User) Validate() error {
	if u.Model == "" && (u.BaseURL != "" || u.APIKeyEnv != "") {
		return errors.New("base_url and api_key_env of user say where the user model is: give --user-model NAME too")
	}
	return nil
}

// sideModel is a model beside the agent's: it plays a user, judges commands or writes summaries. It uses the agent's endpoint,
// unless another is named.
type sideModel struct {
	role                     string // on a tape
	name, baseURL, apiKeyEnv string // keys of the run file
}

// openUser opens the model that plays the users of tasks that ask for one.
func (m *models) openUser(context.Context) (err error) {
	f := m.File
	if f.User.Model == "" {
		return nil
	}
	m.user, err = m.openSide(sideModel{record.User, f.User.Model, f.User.BaseURL, f.User.APIKeyEnv}, model.Config{
		Patience: model.Patience{Timeout: f.Requests.Timeout, Retries: f.Requests.Retries},
	})
	return err
}

// openSide opens a side model with the settings of cfg, except name and endpoint.
func (m *models) openSide(s sideModel, cfg model.Config) (_ *model.Client, err error) {
	f := m.File
	cfg.Name, cfg.BaseURL = s.name, cmp.Or(s.baseURL, baseURL(f.Model))
	cfg.Proxy, cfg.Concurrency, cfg.Processors, cfg.Logger = http.ProxyFromEnvironment, f.Play.Workers, m.processors, m.Logger
	named := func(err error) error {
		if err != nil {
			return fmt.Errorf("%s model: %w", s.role, err)
		}
		return nil
	}
	// The agent's key is only sent to the agent's endpoint.
	key := s.apiKeyEnv
	if key == "" && s.baseURL == "" {
		key = f.Model.APIKeyEnv
	}
	if cfg.APIKey, err = m.apiKey(key, cfg.BaseURL); err != nil {
		return nil, named(err)
	}
	m.thread(&cfg, s.role)
	m.pay(&cfg)
	client, err := model.Open(cfg)
	if err != nil {
		return nil, named(err)
	}
	m.closers = append(m.closers, client.Close)
	m.probes = append(m.probes, func(ctx context.Context) error { return named(client.Probe(ctx)) })
	return client, nil
}
