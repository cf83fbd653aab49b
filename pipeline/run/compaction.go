package run

import (
	"context"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
)

// openSummary opens the model that writes summaries; without one the agent's own does.
func (m *models) openSummary(context.Context) (err error) {
	f := m.File
	if f.Context.SummaryModel == "" {
		return nil
	}
	cfg := model.Config{Patience: f.Requests, Outages: m.outages.tell}
	cfg.MinInFlight, cfg.MaxInFlight = 0, 0 // these are for the agent's endpoints
	m.summary, err = m.openSide(sideModel{record.Summary, f.Context.SummaryModel, f.Context.SummaryBaseURL, f.Context.SummaryAPIKeyEnv}, cfg)
	return err
}

// context is the settings that keep the agent's conversations within its window.
func (m *models) context() rollout.Context {
	f := m.File
	c := rollout.Context{ContextSettings: f.Context, Window: m.window, Reply: m.sampling.MaxTokens}
	if m.summary != nil { // a nil client would make a non-nil interface
		c.Summary, c.SummaryWindow = m.summary, m.summary.Window()
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
