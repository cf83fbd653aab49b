package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"trajgen/datasets"
	"trajgen/distributions"
	"trajgen/outputs"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/plugin"
)

// experiment is a run file with everything opened that it names. Whatever is wrong with it is the user's to mend, and
// nothing was started yet.
type experiment struct {
	file     runFile
	warnings io.Writer
	logger   *slog.Logger
	source   datasets.Source
	registry *registry.Registry
	draws    map[string]*distributions.Distribution // by name or path
	backend  *withImages
	plugins  *plugin.Set      // nil without any
	server   *scripted.Server // nil without a policy
	client   *model.Client
	commands *tools.CommandPolicy
	user     *model.Client // plays users; nil without a user_model
	tasks    int
	image    string // the first that a task wants
	badRows  int
	surveyed bool
	left     map[string]bool // tasks that are not played, with skip_bad_rows
	parts    experimentParts
	system   string
	closers  []func() error
}

// open opens a validated run file. w gets the warnings.
func (f runFile) open(ctx context.Context, w io.Writer, logger *slog.Logger) (_ *experiment, err error) {
	e := &experiment{file: f, warnings: w, logger: logger, draws: map[string]*distributions.Distribution{}, left: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), e.close())
		}
	}()
	for _, step := range []func(context.Context) error{e.openPrompt, e.openDataset, e.openSandbox, e.openPlugins, e.openRegistry, e.openModel, e.openUser, e.openCommandPolicy, e.survey, e.tryImage} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return e, e.client.Probe(ctx)
}

func (e *experiment) close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	return errors.Join(errs...)
}

func (e *experiment) openPrompt(context.Context) error {
	if e.file.SystemPrompt == "" {
		return nil
	}
	data, err := os.ReadFile(e.file.SystemPrompt)
	if err != nil {
		return fmt.Errorf("read system prompt: %w", err)
	}
	e.system, e.parts.System = string(data), digest("", data)
	return nil
}

// openRegistry makes the registry and checks the run's own toolsets and distribution against it.
func (e *experiment) openRegistry(ctx context.Context) error {
	var more []registry.Tool
	if e.plugins != nil {
		more = e.plugins.Tools()
	}
	var err error
	if e.registry, err = newRegistry(e.file, more...); err != nil {
		return err
	}
	if err = e.file.checkResultLimits(e.registry); err != nil {
		return err
	}
	fixed, err := e.registry.Select(ctx, e.file.fixedToolsets(), e.file.DisabledToolsets)
	if err != nil {
		return err
	}
	if len(fixed.Names()) == 0 {
		return fmt.Errorf("toolsets %v without %v leave no tool: %s", e.file.fixedToolsets(), e.file.DisabledToolsets,
			cmp.Or(reasons(fixed.Missing()), "there is none in them"))
	}
	all, err := e.registry.Select(ctx, []string{"all"}, nil)
	if err != nil {
		return err
	}
	e.parts.Tools = digest("", bytes.Join(rawTexts(all.Schemas()), []byte("\n")))
	if e.file.Distribution == "" {
		return nil
	}
	distribution, err := e.distribution(ctx, e.file.Distribution)
	if err != nil {
		return err
	}
	e.parts.Distribution = drawDigest(distribution)
	return nil
}

func rawTexts(raw []json.RawMessage) [][]byte {
	texts := make([][]byte, len(raw))
	for i, r := range raw {
		texts[i] = r
	}
	return texts
}

func (e *experiment) openDataset(context.Context) error {
	options := datasets.Options{MaxTasks: e.file.MaxTasks, SkipBadRows: e.file.SkipBadRows, OnSkip: e.skipped()}
	if e.file.Map != "" {
		mapping, err := datasets.LoadMapping(e.file.Map)
		if err != nil {
			return err
		}
		options.Map = mapping
		e.parts.Mapping = mapping.Digest()
	}
	source, err := datasets.Open(e.file.Dataset, options)
	if err != nil {
		return err
	}
	e.source = source
	return nil
}

func (e *experiment) openSandbox(context.Context) error {
	choice := backendChoice{name: e.file.Sandbox, settings: e.file.SandboxSettings, imageDir: e.file.ImageDir, ready: e.file.ReadySandboxes, logger: e.logger}
	backend, err := choice.open()
	if err != nil {
		return err
	}
	e.backend = backend
	e.closers = append(e.closers, backend.Close)
	return errors.Join(checkLevel(backend.Guarantees(), e.file.Isolation), e.offers(e.file.Network, e.file.Image))
}

// openModel opens the client, and the embedded server in front of it when a policy plays.
func (e *experiment) openModel(context.Context) error {
	f := e.file
	cfg := model.Config{
		Name: f.Model, BaseURL: f.BaseURL, Temperature: f.Temperature, TopP: f.TopP, MaxTokens: f.MaxTokens, Stream: f.Stream,
		Timeout: f.RequestTimeout, MaxRetries: f.RequestRetries, ExtraBody: f.ExtraBody, Headers: f.Headers, Proxy: http.ProxyFromEnvironment, Concurrency: f.Workers, Logger: e.logger,
	}
	if f.Policy != "" {
		if err := e.startServer(&cfg); err != nil {
			return err
		}
	} else {
		var err error
		if cfg.APIKey, err = apiKey(f.APIKeyEnv, f.BaseURL); err != nil {
			return err
		}
		if cfg.Headers, err = secretHeaders(f.Headers, f.HeaderEnv); err != nil {
			return err
		}
	}
	client, err := model.Open(cfg)
	if err != nil {
		return err
	}
	e.client = client
	e.closers = append(e.closers, func() error { client.Close(); return nil })
	return nil
}

func (e *experiment) startServer(cfg *model.Config) error {
	if cfg.Name == "" {
		cfg.Name = "scripted-" + e.file.Policy
	}
	scriptedConfig := scripted.Config{Policy: e.file.Policy, Skill: e.file.Skill, Seed: e.file.Seed, Model: cfg.Name, Logger: e.logger}
	if e.file.Replay != "" {
		reader, err := outputs.OpenReader(journalDir(e.file.Replay))
		if err != nil {
			return fmt.Errorf("open the journal to replay: %w", err)
		}
		e.closers = append(e.closers, reader.Close)
		scriptedConfig.Replay = replayFrom(reader)
		e.parts.Replay = replayDigest(reader)
	}
	server, err := scripted.New(scriptedConfig)
	if err != nil {
		return err
	}
	cfg.BaseURL, err = server.Start("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the scripted server: %w", err)
	}
	cfg.TraceHeaders = true
	e.server = server
	e.closers = append(e.closers, server.Close)
	return nil
}

// limits are those of each sandbox.
func (f runFile) limits() sandbox.Limits {
	return sandbox.Limits{Memory: int64(f.Memory), Processes: f.Processes, CPUs: f.CPUs, Disk: int64(f.Disk), Inodes: int64(f.Inodes)}
}

// player is what plays the experiment's episodes.
func (e *experiment) player() *rollout.Player {
	f := e.file
	player := &rollout.Player{
		Model: e.client, Registry: e.registry, Sandboxes: e.backend, System: e.system, Disabled: f.DisabledToolsets,
		Limits:  episode.Limits{Turns: f.MaxTurns, Tokens: f.EpisodeTokens, Time: f.EpisodeTimeout},
		Network: sandbox.Network(f.Network), Allow: f.Allow, Image: f.Image, Samples: f.Samples,
		Secrets: f.secrets(e.registry), Results: f.resultLimits(), Guardrails: f.Guardrails,
		Hooks: e.hooks, Resources: f.limits(), Now: time.Now, Logger: e.logger,
	}
	if e.user != nil { // a nil client in the interface would be no nil model
		player.User = e.user
	}
	return player
}
