package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"trajgen/outputs/compress"
	"trajgen/pipeline/episode"
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

// summaryWriter asks a model for summaries, each once.
type summaryWriter struct {
	client *model.Client
	kept   *compress.Summaries
	by     string // the model and the settings that decide its answers
	had    int
	asked  atomic.Int64
}

func (s *summaryFlags) open(ctx context.Context, path string, std stdio) (*summaryWriter, error) {
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
		APIKey:   key,
		Outages:  tell,
		Proxy:    http.ProxyFromEnvironment,
	})
	if err != nil {
		return nil, usage(fmt.Errorf("summary model: %w", err))
	}
	if err := client.Probe(ctx); err != nil {
		return nil, errors.Join(usage(fmt.Errorf("summary model: %w", err)), client.Close())
	}
	kept, err := compress.OpenSummaries(path)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &summaryWriter{client: client, kept: kept, by: s.name + " at " + strings.TrimRight(s.baseURL, "/"), had: kept.Len()}, nil
}

func (w *summaryWriter) close() error { return errors.Join(w.kept.Close(), w.client.Close()) }

// counts are the numbers of new summaries and of existing ones.
func (w *summaryWriter) counts() (asked, had int) { return int(w.asked.Load()), w.had }

// maxText is how many bytes of a conversation the model can be given.
func (w *summaryWriter) maxText(reply int) int {
	window := w.client.Window()
	if window <= 0 {
		return 0
	}
	return max(window-2*reply, window/4) * 3 // of the four bytes that a token has, more or less
}

func (w *summaryWriter) summarise(ctx context.Context, ask compress.Ask) (compress.Summary, error) {
	return w.kept.Get(ctx, w.by, ask, func(ctx context.Context, ask compress.Ask) (compress.Summary, error) {
		w.asked.Add(1)
		return w.ask(context.WithoutCancel(ctx), ask) // a request in flight is paid for, so its summary is kept
	})
}

func (w *summaryWriter) ask(ctx context.Context, ask compress.Ask) (summary compress.Summary, err error) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(ask.Text))
	seed := int(hash.Sum64() >> 33) // from the request, so that equal requests have equal seeds
	reply, err := w.client.Complete(ctx, model.Request{
		Messages: []episode.Message{{Role: "system", Content: compress.Instruction}, {Role: "user", Content: ask.Text}},
		Seed:     &seed, MaxTokens: ask.MaxTokens, Asker: model.Asker{Episode: ask.Episode, Task: ask.Task},
	})
	failed, ok := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		return compress.Summary{Text: reply.Message.Content, Model: cmp.Or(reply.Model, "unknown"), Usage: reply.Usage}, nil
	case ok && (failed.Class == model.ClassBadRequest || failed.Class == model.ClassContentPolicy || failed.Class == model.ClassContextOverflow || failed.Class == model.ClassRequestTooLarge):
		return summary, fmt.Errorf("%w: %s", compress.ErrNoSummary, failed.Class)
	}
	return summary, fmt.Errorf("summary model: %w", err)
}

// measure estimates the tokens of an episode by the ratio of tokens to bytes that the server of its last turn counted. Reasoning,
// which was not sent, counts at the same ratio, as it is in the training data.
func measure(ep *episode.Episode) compress.Ruler {
	var counter model.Counter
	learned := false
	for i := len(ep.Turns) - 1; i >= 0 && !learned; i-- {
		turn := &ep.Turns[i]
		if !turn.Usage.Reported || turn.Usage.Prompt <= 0 || turn.Message < 0 || turn.Message > len(ep.Messages) {
			continue
		}
		sent := ep.Sent(i)
		if turn.Usage.Prompt <= model.PromptBound(model.Request{Messages: sent, Tools: ep.Tools}) { // else the server counted something else
			counter.Learn(sent, ep.Tools, turn.Usage.Prompt)
			learned = true
		}
	}
	counter.Forget()
	return compress.Ruler{
		Tools: counter.Count(nil, ep.Tools), Learned: learned,
		Message: func(m *episode.Message) int {
			one := *m
			one.Content += one.Reasoning
			return counter.Count([]episode.Message{one}, nil)
		},
	}
}
