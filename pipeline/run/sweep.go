package run

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
)

// Sweep has settings of the model that vary between the samples of each task.
type Sweep struct {
	Model           []sweptModel `yaml:"model,omitempty"`
	ReasoningEffort []string     `yaml:"reasoning_effort,omitempty"`
	Temperature     []float64    `yaml:"temperature,omitempty"`
	TopP            []float64    `yaml:"top_p,omitempty"`
}

// sweptModel is a name, or a mapping for a model at another endpoint.
type sweptModel struct {
	Name      string `yaml:"name"`
	BaseURL   string `yaml:"base_url,omitempty"`
	APIKeyEnv string `yaml:"api_key_env,omitempty"`
}

// UnmarshalYAML reads both forms.
func (m *sweptModel) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*m = sweptModel{Name: node.Value}
		return nil
	}
	type plain sweptModel
	return node.Decode((*plain)(m))
}

// MarshalYAML writes the name alone if that is enough.
func (m sweptModel) MarshalYAML() (any, error) {
	if m.BaseURL == "" && m.APIKeyEnv == "" {
		return m.Name, nil
	}
	type plain sweptModel
	return plain(m), nil
}

// samplingOf is a model's sampling before the sweep. Extra body fields override the settings here, too.
func samplingOf(m model.Settings, name string) episode.Sampling {
	s := episode.Sampling{Model: name, ReasoningEffort: m.ReasoningEffort, Temperature: m.Temperature, TopP: m.TopP, MaxTokens: m.MaxTokens}
	number := func(name string, is **float64) {
		switch v := m.ExtraBody[name].(type) {
		case float64:
			*is = &v
		case int:
			*is = new(float64(v))
		case nil:
			if _, removed := m.ExtraBody[name]; removed {
				*is = nil
			}
		}
	}
	number("temperature", &s.Temperature)
	number("top_p", &s.TopP)
	limits := []string{model.LimitTokens, model.LimitCompletion}
	for _, name := range limits {
		other := m.MaxTokensField != "" && m.MaxTokensField != model.LimitAuto && m.MaxTokensField != name // removes a field that is not sent
		if value, given := m.ExtraBody[name]; given && value == nil && !other {
			s.MaxTokens = 0
		}
	}
	for _, name := range limits {
		var limit *float64
		if number(name, &limit); limit != nil {
			s.MaxTokens = int(*limit)
		}
	}
	if effort, given := m.ExtraBody["reasoning_effort"]; given {
		s.ReasoningEffort, _ = effort.(string)
	}
	return s
}

// Varied are the settings that vary.
func (s Sweep) Varied() rollout.Sweep {
	return rollout.Sweep{Models: s.names(), ReasoningEfforts: s.ReasoningEffort, Temperatures: s.Temperature, TopPs: s.TopP}
}

func (s Sweep) names() []string {
	var names []string
	for _, m := range s.Model {
		names = append(names, m.Name)
	}
	return names
}

// CheckSweep says what is wrong with the sweep, by itself and together with the settings that it varies.
func (f *File) CheckSweep() error {
	errs := []error{f.Sweep.Varied().Validate(f.Samples)}
	varied := func(name string, swept bool, given bool) {
		_, extra := f.Model.ExtraBody[name]
		if swept && (given || extra) {
			errs = append(errs, fmt.Errorf("%s is given for the run and in its sweep; leave one out", name))
		}
	}
	varied("model", len(f.Sweep.Model) > 0, f.Model.Name != "")
	varied("reasoning_effort", len(f.Sweep.ReasoningEffort) > 0, f.Model.ReasoningEffort != "")
	varied("temperature", len(f.Sweep.Temperature) > 0, f.Model.Temperature != nil)
	varied("top_p", len(f.Sweep.TopP) > 0, f.Model.TopP != nil)
	if f.Scripted.Policy != "" && len(f.Sweep.Model) > 0 {
		errs = append(errs, errors.New("a sweep of models and a policy are given: the embedded server is one model; leave one out"))
	}
	if len(f.Model.Fallbacks) > 0 && len(f.Sweep.Model) > 0 {
		errs = append(errs, errors.New("a sweep of models and fallbacks are given: one model would answer in another's place; leave one out"))
	}
	return errors.Join(errs...)
}

// openSwept opens a client for each model of the sweep. cfg is the run's own.
func (m *models) openSwept(cfg model.Config) error {
	m.swept = model.ByName{}
	for _, one := range m.File.Sweep.Model {
		own := cfg
		own.Name = one.Name
		var err error
		if one.BaseURL != "" { // another server must not get the secrets of the run's endpoint
			own.BaseURL, own.Endpoints, own.Headers = one.BaseURL, nil, m.File.Model.Headers
			own.APIKey, err = m.apiKey(one.APIKeyEnv, one.BaseURL)
		} else if one.APIKeyEnv != "" {
			own.APIKey, err = m.apiKey(one.APIKeyEnv, baseURL(m.File.Model))
		}
		if err != nil {
			return fmt.Errorf("model %s: %w", one.Name, err)
		}
		client, err := m.openClient(own)
		if err != nil {
			return fmt.Errorf("model %s: %w", one.Name, err)
		}
		m.swept[one.Name] = client
	}
	return nil
}

// openClient opens one of the models that play the agent.
func (m *models) openClient(cfg model.Config) (*model.Client, error) {
	client, err := model.Open(cfg)
	if err != nil {
		return nil, err
	}
	m.clients, m.probes = append(m.clients, client), append(m.probes, client.Probe)
	m.closers = append(m.closers, client.Close)
	return client, nil
}
