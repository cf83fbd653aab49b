package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"trajgen/datasets"
	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/run"
)

func newServeModel(std stdio) *cobra.Command {
	var addr, dataset, mapping, replay, keyEnv string
	cfg := scripted.Config{Skill: 0.7, Model: "scripted"}
	cmd := &cobra.Command{
		Use:   "serve-model --policy POLICY [flags]",
		Short: "Serve the scripted OpenAI-compatible model",
		Long: `Serves /v1/models and /v1/chat/completions from a script instead of a model: chat, tools, parallel calls, streaming,
usage, log probabilities, token ids, and errors and delays on demand. Policies: ` + strings.Join(scripted.Policies(), ", ") + `.

oracle plays the dataset's reference solutions, noop answers at once with nothing, noisy solves a share of the episodes
and fails at the others the way models fail, replay repeats the assistant messages of a recorded run. A request is
matched to its task by the header X-Trajgen-Task, or by its first user message.

The others are for measuring what faults of tools cost, with a truth that is known: they play as oracle does until a call
does not get what it got in the run of --replay, and then do what their chances say. At a result that says that something
is wrong, retrier:0.9 makes the call again (at most three times, each with this chance) or gives up, giver_up gives up,
gullible:0.5 goes on with this chance as if nothing was, and else makes the call again, switcher:0.9 uses another tool for
the same thing or gives up. After a wrong value that nothing shows, all go on and write it where the true one would have
been, but checker:0.8,0.9 makes the call again with the first chance, then takes the second result with the other chance;
it answers what is loud as retrier does, with the second chance. Without --replay they see what is loud alone.

Replies depend on the seed, the task, the episode and the request, and on nothing else; --rate, --tokens-per-minute,
--max-in-flight, --slots and --outage decide by the clock whether and when they come. Usage is exact by a tokenizer that
has a token for each byte and one for each mark of a ChatML template: what return_token_ids gives (as vLLM does), and
what /tokenize and /detokenize show. GET /stats counts requests, refusals and statuses; GET /health says whether there
is an outage.

A request with the header X-Scripted-Fault is answered with that fault, and --fault-rate spreads --fault over all:
a status from 400 to 599 (429;retry-after=1), stall, cut, reset, garbage, types, empty, error, slow (slow;delay=2s),
quota, auth, policy, filter, context. With ;times=N only the first N times that the same request comes.`,
		Example: `  trajgen serve-model --policy oracle --dataset bundled --addr 127.0.0.1:8000
  trajgen run --dataset bundled --model scripted --base-url http://127.0.0.1:8000/v1
  trajgen serve-model --policy noisy --rate 20 --burst 5 --delay lognormal:2s,0.4 --outage 60s-90s
  trajgen serve-model --policy oracle --tool-format glm45 --reasoning tags --context 32768 --errors vllm`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if keyEnv != "" {
				if cfg.APIKey = os.Getenv(keyEnv); cfg.APIKey == "" {
					return usage(fmt.Errorf("environment variable %s is empty", keyEnv))
				}
			}
			var clean func(string) ([]episode.Message, bool)
			if replay != "" {
				reader, err := journal.OpenReader(run.JournalDir(replay))
				if err != nil {
					return usage(err)
				}
				defer reader.Close()
				cfg.Replay = run.ReplayFrom(reader)
				if (scripted.Settings{Policy: cfg.Policy}).Remembers() {
					if clean, err = run.CleanFrom(cmd.Context(), reader); err != nil {
						return usage(err)
					}
				}
			}
			cfg.Logger = slog.New(slog.NewTextHandler(std.err, nil))
			server, err := scripted.New(cfg)
			if err != nil {
				return usage(err)
			}
			if clean != nil {
				server.Remember(clean)
			}
			if err := teach(cmd.Context(), server, dataset, mapping); err != nil {
				return usage(err)
			}
			url, err := server.Start(addr)
			if err != nil {
				return usage(fmt.Errorf("listen: %w", err))
			}
			defer func() {
				err = errors.Join(err, server.Close())
				if done := server.Stats(); done.Requests > 0 {
					cfg.Logger.Info("served", "requests", done.Requests, "refused", done.Refused, "peak_in_flight", done.Peak,
						"prompt_tokens", done.Prompt, "completion_tokens", done.Reply)
				}
			}()
			fmt.Fprintln(std.out, url)
			ctx, drain, stop := interruptible(cmd.Context(), io.Discard, nil)
			defer stop()
			select {
			case <-drain:
			case <-ctx.Done():
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&addr, "addr", "127.0.0.1:8000", "address to listen on; port 0 picks one")
	flags.StringVar(&cfg.Policy, "policy", "", "policy: "+strings.Join(scripted.Policies(), ", "))
	flags.Float64Var(&cfg.Skill, "skill", cfg.Skill, "share of episodes that the noisy policy solves")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "seed of noisy, and of retrier and the like")
	flags.StringVar(&cfg.Model, "model", cfg.Model, "name under which the model is served")
	flags.StringVar(&dataset, "dataset", "bundled", "dataset whose reference solutions are played")
	flags.StringVar(&mapping, "map", "", "mapping file of the dataset")
	flags.StringVar(&replay, "replay", "", "run directory: what the replay policy plays; and what calls should get, for retrier and the like")
	flags.StringVar(&keyEnv, "api-key-env", "", "environment variable with the key that clients must send")
	flags.StringVar(&cfg.Delay, "delay", "0s", "time before each reply: 2s, 1s-3s, or lognormal:MEDIAN,SIGMA")
	flags.Float64Var(&cfg.Speed, "speed", 0, "tokens per second of a reply, streamed or not; 0 is at once")
	flags.Float64Var(&cfg.RequestRate, "rate", 0, "requests per second that are let in, with 429 and x-ratelimit headers beyond; 0 is any number")
	flags.IntVar(&cfg.RequestBurst, "burst", 1, "requests that --rate lets in at once")
	flags.IntVar(&cfg.TokenRate, "tokens-per-minute", 0, "tokens of prompts and replies that are let in each minute; 0 is any number")
	flags.IntVar(&cfg.MaxInFlight, "max-in-flight", 0, "requests at a time, with 503 beyond; 0 is any number")
	flags.IntVar(&cfg.Slots, "slots", 0, "requests that are worked on at a time while others wait; 0 is any number")
	flags.StringArrayVar(&cfg.Outages, "outage", nil, "window without service, from the first request on: 30s-90s (503) or 30s-90s;refuse (connections are closed)")
	flags.Float64Var(&cfg.FaultRate, "fault-rate", 0, "share of requests that end in one of --fault")
	flags.StringArrayVar(&cfg.Faults, "fault", nil, "fault for --fault-rate (default 429;retry-after=0, 500, 503)")
	flags.IntVar(&cfg.Context, "context", 0, "tokens that a prompt and its reply may have; 0 is any number")
	flags.StringVar(&cfg.Errors, "errors", scripted.ErrorsOpenAI, "words in which a prompt that is too long is refused: "+strings.Join(scripted.ErrorStyles(), ", "))
	flags.StringVar(&cfg.ToolFormat, "tool-format", "", "write calls into the text instead of tool_calls: "+strings.Join(scripted.ToolFormats(), ", "))
	flags.StringVar(&cfg.ReasoningAs, "reasoning", scripted.ReasoningContent, "where reasoning is sent: "+strings.Join(scripted.ReasoningFields(), ", "))
	flags.StringVar(&cfg.Drift, "drift", scripted.DriftNone, "what the chat template changes of earlier turns: "+strings.Join(scripted.Drifts(), ", "))
	flags.StringVar(&cfg.WeightVersion, "weight-version", "", "sent as metadata.weight_version with each reply, as SGLang does")
	_ = cmd.MarkFlagRequired("policy")
	return cmd
}

// teach reads a dataset for its solutions.
func teach(ctx context.Context, server *scripted.Server, dataset, mapping string) error {
	source, _, err := datasets.Settings{Path: datasets.Paths{dataset}, Map: mapping}.Open(datasets.Options{})
	if err != nil {
		return err
	}
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			return err
		}
		server.Learn(task)
	}
	return nil
}
