package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"trajgen/outputs/compress"
	"trajgen/pipeline/model"
)

// SummaryModel is a model that writes summaries after the fact.
type SummaryModel struct {
	Name, BaseURL, APIKeyEnv string
	OutageLimit              time.Duration
}

// Open opens the model, which keeps its summaries in the file of that path. Its outages are told on w.
func (s SummaryModel) Open(ctx context.Context, path string, w io.Writer) (*compress.Writer, error) {
	key, err := APIKey(s.APIKeyEnv, s.BaseURL)
	if err != nil {
		return nil, AsMistake(err)
	}
	tell := func(o model.Outage) {
		if o.Over {
			fmt.Fprintf(w, "%s answers again\n", o.Endpoint)
			return
		}
		fmt.Fprintf(w, "paused: %s\n", o)
	}
	client, err := model.Open(model.Config{
		Settings: model.Settings{Name: s.Name, BaseURL: s.BaseURL, Temperature: new(0.0)},
		Patience: model.Patience{Retries: 5, RetryShare: 0.2, OutageLimit: s.OutageLimit},
		APIKey:   key, Outages: tell, Proxy: http.ProxyFromEnvironment,
	})
	if err != nil {
		return nil, AsMistake(fmt.Errorf("summary model: %w", err))
	}
	if err := client.Probe(ctx); err != nil {
		return nil, errors.Join(AsMistake(fmt.Errorf("summary model: %w", err)), client.Close())
	}
	return compress.NewWriter(client, s.Name+" at "+strings.TrimRight(s.BaseURL, "/"), path)
}
