package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/model"
)

// fallback is a model that answers when the one before it cannot be had.
type fallback struct {
	Model     string `yaml:"model"`
	BaseURL   string `yaml:"base_url,omitempty"`    // default: the run's
	APIKeyEnv string `yaml:"api_key_env,omitempty"` // default with the run's base_url: the run's
}

// patience makes a model's client as patient as the run file says.
func (e *Experiment) patience(cfg *model.Config) {
	f := e.File
	cfg.Timeout, cfg.IdleTimeout, cfg.MaxRetries = f.RequestTimeout, f.IdleTimeout, f.RequestRetries
	cfg.EpisodeRetries, cfg.RetryShare = f.EpisodeRequestRetries, f.RetryShare
	cfg.Outages = &model.Outages{Limit: f.OutageLimit, Observe: e.outages.tell}
}

// openFallbacks puts the run's other models behind its first one, whose settings they share.
func (e *Experiment) openFallbacks(first *model.Client, settings model.Config) error {
	var others []*model.Client
	for _, next := range e.File.Fallbacks {
		client, err := e.openFallback(next, settings)
		if err != nil {
			return fmt.Errorf("fallback model %s: %w", next.Model, err)
		}
		others = append(others, client)
	}
	if len(others) > 0 {
		e.fallen = model.WithFallbacks(first, others...)
	}
	return nil
}

func (e *Experiment) openFallback(next fallback, settings model.Config) (*model.Client, error) {
	f := e.File
	cfg := settings
	cfg.Name, cfg.Endpoints, cfg.BaseURL = next.Model, nil, next.BaseURL
	if next.BaseURL == "" {
		cfg.BaseURL = f.baseURL()
	}
	// Keys and headers of one endpoint go to no other.
	if cfg.BaseURL != f.baseURL() {
		cfg.Headers = nil
	} else if next.APIKeyEnv == "" {
		return e.openClient(cfg)
	}
	var err error
	if cfg.APIKey, err = e.apiKey(next.APIKeyEnv, cfg.BaseURL); err != nil {
		return nil, err
	}
	return e.openClient(cfg)
}

// checkPatience says what is wrong with the keys about retries, outages and fallbacks.
func (f *File) checkPatience() error {
	var errs []error
	if f.IdleTimeout < 0 || f.OutageLimit < 0 || f.EpisodeRequestRetries < 0 {
		errs = append(errs, fmt.Errorf("idle_timeout is %s, outage_limit %s and episode_request_retries %d; not below 0", f.IdleTimeout, f.OutageLimit, f.EpisodeRequestRetries))
	}
	if !(f.RetryShare >= 0 && f.RetryShare <= 1) {
		errs = append(errs, fmt.Errorf("retry_share is %v; from 0 to 1", f.RetryShare))
	}
	if f.MaxEpisodeRetries < 0 || !(f.EpisodeRetryShare >= 0 && f.EpisodeRetryShare <= 1) {
		errs = append(errs, fmt.Errorf("max_episode_retries is %d and episode_retry_share %v; not below 0, and the share from 0 to 1", f.MaxEpisodeRetries, f.EpisodeRetryShare))
	}
	if len(f.Fallbacks) > 0 && f.Policy != "" {
		errs = append(errs, errors.New("fallbacks are given together with policy, which always answers; leave one out"))
	}
	if len(f.Fallbacks) > 0 && len(f.Sweep.Model) > 0 {
		errs = append(errs, errors.New("fallbacks are given together with a sweep of models: an episode of one would be played by another; leave one out"))
	}
	for i, next := range f.Fallbacks {
		if next.Model == "" {
			errs = append(errs, fmt.Errorf("fallback %d names no model", i+1))
		}
		if next.Model == f.Model && (next.BaseURL == "" || next.BaseURL == f.baseURL()) {
			errs = append(errs, fmt.Errorf("fallback %d is the run's own model %s", i+1, f.Model))
		}
	}
	return errors.Join(errs...)
}

// maxRetries is how often the run's episodes may be played again, all together; 0 is no limit.
func (f *File) maxRetries(episodes int) int {
	most := f.MaxEpisodeRetries
	if f.EpisodeRetryShare > 0 {
		share := max(1, int(f.EpisodeRetryShare*float64(episodes)))
		if most == 0 || share < most {
			most = share
		}
	}
	return most
}

// fallbackText is what of the fallbacks is of the experiment: which models may answer.
func (f *File) fallbackText() string {
	var names []string
	for _, next := range f.Fallbacks {
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

// shownBy makes somebody show the outages.
func (o *outages) shownBy(show func(open []model.Outage, news model.Outage)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.show = show
}

// Paused says whether nothing can go on: none of the agent's models answers.
func (e *Experiment) Paused() bool {
	return !slices.ContainsFunc(e.clients, func(c *model.Client) bool { return !c.Paused() })
}
