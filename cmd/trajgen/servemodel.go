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
	"trajgen/outputs"
	"trajgen/pipeline/model/scripted"
)

func newServeModel(std stdio) *cobra.Command {
	var addr, dataset, mapping, replay, keyEnv string
	cfg := scripted.Config{Skill: 0.7, Model: "scripted"}
	cmd := &cobra.Command{
		Use:   "serve-model --policy POLICY [flags]",
		Short: "Serve the scripted OpenAI-compatible model",
		Long: `Serves /v1/models and /v1/chat/completions from a script instead of a model: chat, tools, parallel calls, streaming,
usage, and errors and delays on demand. Policies: ` + strings.Join(scripted.Policies(), ", ") + `.

oracle plays the dataset's reference solutions, noop answers at once with nothing, noisy solves a share of the episodes
and fails at the others the way models fail, replay repeats the assistant messages of a recorded run. A request is
matched to its task by the header X-Trajgen-Task, or by its first user message.`,
		Example: `  trajgen serve-model --policy oracle --dataset bundled --addr 127.0.0.1:8000
  trajgen run --dataset bundled --model scripted --base-url http://127.0.0.1:8000/v1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if keyEnv != "" {
				if cfg.APIKey = os.Getenv(keyEnv); cfg.APIKey == "" {
					return usage(fmt.Errorf("environment variable %s is empty", keyEnv))
				}
			}
			if replay != "" {
				reader, err := outputs.OpenReader(journalDir(replay))
				if err != nil {
					return usage(err)
				}
				defer reader.Close()
				cfg.Replay = replayFrom(reader)
			}
			cfg.Logger = slog.New(slog.NewTextHandler(std.err, nil))
			server, err := scripted.New(cfg)
			if err != nil {
				return usage(err)
			}
			if err := teach(cmd.Context(), server, dataset, mapping); err != nil {
				return usage(err)
			}
			url, err := server.Start(addr)
			if err != nil {
				return usage(fmt.Errorf("listen: %w", err))
			}
			defer func() { err = errors.Join(err, server.Close()) }()
			fmt.Fprintln(std.out, url)
			ctx, drain, stop := interruptible(cmd.Context(), io.Discard)
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
	flags.Uint64Var(&cfg.Seed, "seed", 0, "seed of the noisy policy")
	flags.StringVar(&cfg.Model, "model", cfg.Model, "name under which the model is served")
	flags.StringVar(&dataset, "dataset", "bundled", "dataset whose reference solutions are played")
	flags.StringVar(&mapping, "map", "", "mapping file of the dataset")
	flags.StringVar(&replay, "replay", "", "run directory whose journal the replay policy plays")
	flags.StringVar(&keyEnv, "api-key-env", "", "environment variable with the key that clients must send")
	flags.DurationVar(&cfg.Delay, "delay", 0, "time before each reply")
	_ = cmd.MarkFlagRequired("policy")
	return cmd
}

// teach reads a dataset for its solutions.
func teach(ctx context.Context, server *scripted.Server, dataset, mapping string) error {
	var options datasets.Options
	if mapping != "" {
		loaded, err := datasets.LoadMapping(mapping)
		if err != nil {
			return err
		}
		options.Map = loaded
	}
	source, err := datasets.Open(dataset, options)
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
