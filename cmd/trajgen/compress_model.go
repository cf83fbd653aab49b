package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"trajgen/pipeline/run"
)

// summaryFlags say which model writes summaries after the fact.
type summaryFlags struct{ run.SummaryModel }

func (s *summaryFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.Name, "summary-model", "", "model that writes the summaries with --by model")
	flags.StringVar(&s.BaseURL, "summary-base-url", run.DefaultBaseURL, "OpenAI-compatible endpoint of the summary model, with /v1")
	flags.StringVar(&s.APIKeyEnv, "summary-api-key-env", "", "environment variable that holds that endpoint's key")
	flags.DurationVar(&s.OutageLimit, "outage-limit", 10*time.Minute, "how long to wait while that endpoint does not answer; 0 is for ever")
}

func (s *summaryFlags) validate(by string) error {
	switch {
	case by == "model" && s.Name == "":
		return errors.New("--by model needs --summary-model NAME")
	case by == "rule" && s.Name+s.APIKeyEnv != "":
		return errors.New("--summary-model and --summary-api-key-env are for --by model")
	case s.OutageLimit < 0:
		return fmt.Errorf("--outage-limit is %s (want 0 or more)", s.OutageLimit)
	}
	return nil
}
