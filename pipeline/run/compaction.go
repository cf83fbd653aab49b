package run

import (
	"context"
	"errors"
	"fmt"

	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
)

// openSummary opens the model that writes summaries; without one the agent's own does.
func (e *Experiment) openSummary(ctx context.Context) error {
	f := e.File
	if f.SummaryModel == "" {
		return nil
	}
	cfg := model.Config{}
	e.patience(&cfg)
	client, err := sideModel{summaryRole, f.SummaryModel, f.SummaryBaseURL, f.SummaryAPIKeyEnv}.open(e, cfg)
	e.summary = client
	return err
}

// checkContext says what is wrong with the keys about the model's window.
func (f *File) checkContext() error {
	errs := []error{rollout.Context{Strategy: f.Compaction, At: f.CompactAt, To: f.CompactTo}.Validate()}
	if f.ContextWindow < 0 {
		errs = append(errs, fmt.Errorf("context_window is %d; not below 0", f.ContextWindow))
	}
	if f.SummaryModel == "" && (f.SummaryBaseURL != "" || f.SummaryAPIKeyEnv != "") {
		errs = append(errs, errors.New("summary_base_url and summary_api_key_env say where the summary model is: give --summary-model NAME too"))
	}
	if f.SummaryModel != "" && f.Compaction != "summarize" {
		errs = append(errs, errors.New("summary_model is for compaction summarize"))
	}
	if f.SummaryModel != "" && f.SummaryBaseURL == "" && f.Policy != "" {
		errs = append(errs, errors.New("summary_model needs summary_base_url when a policy plays: the embedded server knows the agent's part alone"))
	}
	return errors.Join(errs...)
}

// context is how the agent's conversations are kept within its window.
func (e *Experiment) context() rollout.Context {
	f := e.File
	c := rollout.Context{Window: e.window, Reply: e.sampling.MaxTokens, Strategy: f.Compaction, At: f.CompactAt, To: f.CompactTo}
	if e.summary != nil { // a nil client in the interface would be no nil model
		c.Summary, c.SummaryName, c.SummaryWindow = e.summary, f.SummaryModel, e.summary.Window()
	}
	return c
}

// window is the smallest of the models that may answer for the named one.
func (e *Experiment) window(name string) int {
	least := 0
	for _, client := range e.clients {
		if e.swept != nil && e.swept[name] != model.Model(client) {
			continue
		}
		if window := client.Window(); window > 0 && (least == 0 || window < least) {
			least = window
		}
	}
	return least
}
