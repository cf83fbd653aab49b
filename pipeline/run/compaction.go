package run

import (
	"context"
	"errors"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
)

// Context is how a conversation is kept within the model's window.
type Context struct {
	Window           int     `yaml:"window,omitempty" flag:"context-window" experiment:"given" help:"tokens that a prompt and its reply may have together (default: what the server says)"`
	Compaction       string  `yaml:"compaction,omitempty" experiment:"given" help:"what is done when a conversation nears the window's end: stop (the episode ends at its limit; default), drop (the oldest tool results) or summarize"`
	CompactAt        float64 `yaml:"compact_at,omitempty" experiment:"given" help:"share of the window at which a conversation is shortened (default 0.8)"`
	CompactTo        float64 `yaml:"compact_to,omitempty" experiment:"given" help:"share of the window to which it is shortened, about (default 0.5)"`
	SummaryModel     string  `yaml:"summary_model,omitempty" experiment:"given" help:"model that writes the summaries of compaction summarize (default: the agent's own)"`
	SummaryBaseURL   string  `yaml:"summary_base_url,omitempty" experiment:"no" help:"endpoint of the summary model (default: base_url)"`
	SummaryAPIKeyEnv string  `yaml:"summary_api_key_env,omitempty" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
}

// openSummary opens the model that writes summaries; without one the agent's own does.
func (m *models) openSummary(ctx context.Context) error {
	f := m.File
	if f.Context.SummaryModel == "" {
		return nil
	}
	cfg := model.Config{Patience: f.Requests, Outages: m.outages.tell}
	cfg.MinInFlight, cfg.MaxInFlight = 0, 0 // these are for the agent's endpoints
	client, err := sideModel{record.Summary, f.Context.SummaryModel, f.Context.SummaryBaseURL, f.Context.SummaryAPIKeyEnv}.open(m, cfg)
	m.summary = client
	return err
}

// checkContext says what is wrong with the keys about the model's window.
func (f *File) checkContext() error {
	errs := []error{rollout.Context{Strategy: f.Context.Compaction, At: f.Context.CompactAt, To: f.Context.CompactTo}.Validate()}
	if f.Context.SummaryModel == "" && (f.Context.SummaryBaseURL != "" || f.Context.SummaryAPIKeyEnv != "") {
		errs = append(errs, errors.New("summary_base_url and summary_api_key_env say where the summary model is: give --summary-model NAME too"))
	}
	if f.Context.SummaryModel != "" && f.Context.Compaction != "summarize" {
		errs = append(errs, errors.New("summary_model is for compaction summarize"))
	}
	if f.Context.SummaryModel != "" && f.Context.SummaryBaseURL == "" && f.Scripted.Policy != "" {
		errs = append(errs, errors.New("summary_model needs summary_base_url when a policy plays: the embedded server knows the agent's part alone"))
	}
	return errors.Join(errs...)
}

// context is the settings that keep the agent's conversations within its window.
func (m *models) context() rollout.Context {
	f := m.File
	c := rollout.Context{Window: m.window, Reply: m.sampling.MaxTokens, Strategy: f.Context.Compaction, At: f.Context.CompactAt, To: f.Context.CompactTo}
	if m.summary != nil { // a nil client would make a non-nil interface
		c.Summary, c.SummaryName, c.SummaryWindow = m.summary, f.Context.SummaryModel, m.summary.Window()
	}
	return c
}

// window is the smallest window of the models that may answer for the named one.
func (m *models) window(name string) int {
	least := 0
	for _, client := range m.clients {
		if m.swept != nil && m.swept[name] != model.Model(client) {
			continue
		}
		if window := client.Window(); window > 0 && (least == 0 || window < least) {
			least = window
		}
	}
	return least
}
