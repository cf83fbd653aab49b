package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/model"
)

// Requests is how patient the run is with the servers of models.
type Requests struct {
	Timeout        time.Duration `yaml:"timeout" flag:"request-timeout" experiment:"no" help:"most time of one request"`
	IdleTimeout    time.Duration `yaml:"idle_timeout,omitempty" experiment:"no" help:"most time in which a stream may be silent, before its first token and within (default 2m)"`
	Retries        int           `yaml:"retries" flag:"request-retries" experiment:"no" help:"retries of a request that failed in a way that may pass; an outage takes none of them"`
	EpisodeRetries int           `yaml:"episode_retries" flag:"episode-request-retries" experiment:"no" help:"retries of all requests of an episode; 0 is no bound"`
	RetryShare     float64       `yaml:"retry_share" experiment:"no" help:"share of requests that retries may be once a hundred were made, or two for each worker; more of them wait. 0 is no bound"`
	OutageLimit    time.Duration `yaml:"outage_limit" experiment:"no" help:"how long the run pauses while the endpoint does not answer, before it stops; 0 is for ever"`
	MaxInFlight    int           `yaml:"max_in_flight,omitempty" experiment:"no" help:"requests that an endpoint is sent at once, at most (default: workers); fewer while it refuses them"`
	MinInFlight    int           `yaml:"min_in_flight,omitempty" experiment:"no" help:"requests that an endpoint is sent at once even while it refuses them (default 1)"`
}

// fallback is a model that answers when the one before it cannot be had.
type fallback struct {
	Model     string `yaml:"model"`
	BaseURL   string `yaml:"base_url,omitempty"`    // default: the run's
	APIKeyEnv string `yaml:"api_key_env,omitempty"` // default with the run's base_url: the run's
}

// patience makes a model's client as patient as the run file says.
func (m *models) patience(cfg *model.Config) {
	f := m.File
	cfg.Timeout, cfg.IdleTimeout, cfg.MaxRetries = f.Requests.Timeout, f.Requests.IdleTimeout, f.Requests.Retries
	cfg.EpisodeRetries, cfg.RetryShare = f.Requests.EpisodeRetries, f.Requests.RetryShare
	cfg.Outages = &model.Outages{Limit: f.Requests.OutageLimit, Observe: m.outages.tell}
}

// openFallbacks puts the run's other models behind its first one, whose settings they share.
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

func (m *models) openFallback(next fallback, settings model.Config) (*model.Client, error) {
	f := m.File
	cfg := settings
	cfg.Name, cfg.Endpoints, cfg.BaseURL = next.Model, nil, next.BaseURL
	if next.BaseURL == "" {
		cfg.BaseURL = f.baseURL()
	}
	// Keys and headers of one endpoint go to no other.
	if cfg.BaseURL != f.baseURL() {
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

// Validate says what is wrong with the section.
func (r Requests) Validate() error {
	var errs []error
	if r.Timeout == 0 {
		errs = append(errs, errors.New("requests.timeout (--request-timeout) is 0; over 0"))
	}
	if r.RetryShare > 1 {
		errs = append(errs, fmt.Errorf("requests.retry_share is %v; from 0 to 1", r.RetryShare))
	}
	if r.MaxInFlight > 0 && r.MinInFlight > r.MaxInFlight {
		errs = append(errs, fmt.Errorf("min_in_flight is %d and max_in_flight %d; the least first", r.MinInFlight, r.MaxInFlight))
	}
	return errors.Join(errs...)
}

// checkFallbacks says what is wrong with the models that stand in for the run's.
func (f *File) checkFallbacks() error {
	var errs []error
	if len(f.Model.Fallbacks) > 0 && f.Scripted.Policy != "" {
		errs = append(errs, errors.New("fallbacks are given together with policy, which always answers; leave one out"))
	}
	for i, next := range f.Model.Fallbacks {
		if next.Model == "" {
			errs = append(errs, fmt.Errorf("fallback %d names no model", i+1))
		}
		if next.Model == f.Model.Name && (next.BaseURL == "" || next.BaseURL == f.baseURL()) {
			errs = append(errs, fmt.Errorf("fallback %d is the run's own model %s", i+1, f.Model.Name))
		}
	}
	return errors.Join(errs...)
}

// maxRetries is how often the run's episodes may be played again, all together; 0 is no limit.
func (f *File) maxRetries(episodes int) int {
	most := f.Play.MaxEpisodeRetries
	if f.Play.EpisodeRetryShare > 0 {
		share := max(1, int(f.Play.EpisodeRetryShare*float64(episodes)))
		if most == 0 || share < most {
			most = share
		}
	}
	return most
}

// fallbackText is what of the fallbacks is of the experiment: which models may answer.
func (f *File) fallbackText() string {
	var names []string
	for _, next := range f.Model.Fallbacks {
		names = append(names, next.Model)
	}
	return strings.Join(names, ",")
}

// outages knows which endpoints do not answer, and tells whoever shows it. It is safe for concurrent use.
type outages struct {
	mu   sync.Mutex // guards what follows
	open []model.Outage
	show func([]model.Outage, model.Outage)
}

// tell takes news from a client.
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

// shownBy has show called with each change of the outages.
func (o *outages) shownBy(show func(open []model.Outage, news model.Outage)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.show = show
}

// Paused says whether nothing can go on: none of the agent's models answers.
func (m *models) Paused() bool {
	return !slices.ContainsFunc(m.clients, func(c *model.Client) bool { return !c.Paused() })
}
