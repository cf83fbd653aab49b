package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"trajgen/outputs/compress"
	"trajgen/pipeline/model"
	"trajgen/pipeline/run"
)

// summaryFlags say which model writes summaries after the fact.
type summaryFlags struct {
	name, baseURL, apiKeyEnv string
	outageLimit              time.Duration
}

func (s *summaryFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.name, "summary-model", "", "model that writes the summaries with --by model")
	flags.StringVar(&s.baseURL, "summary-base-url", run.DefaultBaseURL, "OpenAI-compatible endpoint of the summary model, with /v1")
	flags.StringVar(&s.apiKeyEnv, "summary-api-key-env", "", "environment variable that holds that endpoint's key")
	flags.DurationVar(&s.outageLimit, "outage-limit", 10*time.Minute, "how long to wait while that endpoint does not answer; 0 is for ever")
}

func (s *summaryFlags) validate(by string) error {
	switch {
	case by == "model" && s.name == "":
		return errors.New("--by model needs --summary-model NAME")
	case by == "rule" && s.name+s.apiKeyEnv != "":
		return errors.New("--summary-model and --summary-api-key-env are for --by model")
	case s.outageLimit < 0:
		return fmt.Errorf("--outage-limit is %s (want 0 or more)", s.outageLimit)
	}
	return nil
}

func (s *summaryFlags) open(ctx context.Context, path string, std stdio) (*compress.Writer, error) {
	key, err := run.APIKey(s.apiKeyEnv, s.baseURL)
	if err != nil {
		return nil, usage(err)
	}
	tell := func(o model.Outage) {
		if o.Over {
			fmt.Fprintf(std.err, "%s answers again\n", o.Endpoint)
			return
		}
		fmt.Fprintf(std.err, "paused: %s\n", o)
	}
	client, err := model.Open(model.Config{
		Settings: model.Settings{Name: s.name, BaseURL: s.baseURL, Temperature: new(0.0)},
		Patience: model.Patience{Retries: 5, RetryShare: 0.2, OutageLimit: s.outageLimit},
		APIKey:   key, Outages: tell, Proxy: http.ProxyFromEnvironment,
	})
	if err != nil {
		return nil, usage(fmt.Errorf("summary model: %w", err))
	}
	if err := client.Probe(ctx); err != nil {
		return nil, errors.Join(usage(fmt.Errorf("summary model: %w", err)), client.Close())
	}
	return compress.NewWriter(client, s.name+" at "+strings.TrimRight(s.baseURL, "/"), path)
}
