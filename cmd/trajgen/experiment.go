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
	"slices"
	"time"

	"trajgen/datasets"
	"trajgen/outputs/journal"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/model/gate"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/model/tape"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/plugin"
)

// experiment is a run file with everything opened that it names. Whatever is wrong with it is the user's to mend, and
// nothing was started yet.
type experiment struct {
	file       runFile
	warnings   io.Writer
	logger     *slog.Logger
	source     datasets.Source
	registry   *registry.Registry
	draws      map[string]*drawn             // by name or path
	fixed      map[string]error              // what is wrong with the toolsets of tasks
	plugins    *plugin.Set                   // nil without any
	server     *scripted.Server              // nil without a policy
	recorder   *tape.Recorder                // nil without a tape that is recorded
	tape       *tape.Tape                    // that is played; nil without
	clients    []*model.Client               // that play the agent
	probes     []func(context.Context) error // of all models, before anything is played
	swept      model.ByName                  // them, of a sweep of models; nil without
	fallen     *model.Fallbacks              // them, where one stands in for another; nil without
	outages    outages
	processors *gate.Processors
	room       func() <-chan struct{} // for another episode; those beyond what can be in flight need no memory yet
	commands   *tools.CommandPolicy
	summary    *model.Client  // writes summaries; nil without a summary_model
	ledger     *budget.Ledger // nil without a budget
	user       *model.Client  // plays users; nil without a user_model
	tasks      int
	image      string // the first that a task wants
	badRows    int
	unjudged   int    // tasks without a verifier
	repeated   int    // tasks with the id of an earlier one
	repeats    string // the first such id
	widened    int    // tasks that open a network wider than the run's
	surveyed   bool
	steps      []datasets.Step // what each step of the choice has left
	left       map[string]bool // tasks that are not played, with skip_bad_rows
	parts      experimentParts
	sampling   episode.Sampling
	system     string
	// opening opens backend, which is there when that has ended.
	opening *meanwhile
	backend *withImages
	// What else the run puts before a task's prompt.
	ephemeral string
	prefill   []episode.Message
	closers   []func() error
}

// open opens a validated run file. w gets the warnings.
func (f runFile) open(ctx context.Context, w io.Writer, logger *slog.Logger) (_ *experiment, err error) {
	e := &experiment{file: f, warnings: w, logger: logger, draws: map[string]*drawn{}, fixed: map[string]error{}, left: map[string]bool{}, processors: ownProcessors()}
	e.room = e.processors.Pace
	defer spare(hasty)()
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), e.close())
		}
	}()
	for _, step := range []func(context.Context) error{e.openPrompt, e.openDataset, e.openSandbox, e.openPlugins, e.openRegistry, e.openTape, e.openBudget, e.openModel, e.openSummary, e.openUser, e.openCommandPolicy, e.survey, e.hasSandbox, e.tryImage} {
		if err := step(ctx); err != nil {
			if e.opening != nil {
				err = cmp.Or(e.opening.wait(), err) // without sandboxes nothing else matters
			}
			return nil, err
		}
	}
	if lacks, err := e.lacks(ctx); err != nil || !lacks {
		return e, err
	}
	for _, probe := range e.probes {
		if err := probe(ctx); err != nil {
			return nil, err
		}
	}
	return e, e.bounded()
}

// lacks says whether an episode is to be played. Where a resume finds none, it only reports, and needs no model for that.
func (e *experiment) lacks(ctx context.Context) (bool, error) {
	if !e.file.resumed {
		return true, nil
	}
	reader, err := journal.OpenReader(journalDir(e.file.outDir()))
	if err != nil {
		return true, nil // who opens it to write says why
	}
	defer reader.Close()
	tasks, _ := e.source.Lazy(ctx)
	for task, err := range e.playable(tasks) {
		if err != nil {
			return false, err
		}
		for sample := range e.file.Samples {
			entry, played := reader.LastEntry(episode.Key{Seed: e.file.Seed, Task: task.ID, Sample: sample}.ID())
			if !played || (pipeline.Record{Outcome: entry.Outcome, Pending: entry.Pending}).Missing(e.file.RetryErrors) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (e *experiment) close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	if e.opening != nil {
		_ = e.opening.wait() // it was said what that came to
	}
	if e.backend != nil { // after all that may have a sandbox open
		errs = append(errs, e.backend.Close())
	}
	e.backend = nil
	return errors.Join(errs...)
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
	if len(fixed.Names()) == 0 && registry.Promise(e.file.fixedToolsets()) {
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
	e.parts.Distribution = drawDigest(distribution.Distribution)
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
	options := datasets.Options{MaxTasks: e.file.MaxTasks, SkipBadRows: e.file.SkipBadRows, OnSkip: e.skipped(), OnRepeat: e.repeat, Shape: e.file.Shape, Choice: e.file.choice(), OnChosen: e.chosen, Subset: e.file.Subset, Split: e.file.Split}
	if e.file.Map != "" {
		mapping, err := datasets.LoadMapping(e.file.Map)
		if err != nil {
			return err
		}
		options.Map = mapping
		e.parts.Mapping = mapping.Digest()
	}
	source, err := datasets.OpenAll(e.file.Dataset, options)
	if err != nil {
		return err
	}
	e.source = source
	return nil
}

// openSandbox begins to: that can take as long as the survey of a large dataset, for which it is seldom needed.
func (e *experiment) openSandbox(context.Context) error {
	e.opening = begin(e.openBackend)
	e.warnings = afterwards{e.warnings, e.opening}
	return nil
}

// hasSandbox waits for the sandboxes.
func (e *experiment) hasSandbox(context.Context) error { return e.opening.wait() }

// sandboxes are there when they are needed.
func (e *experiment) sandboxes() (sandbox.Backend, error) {
	if err := e.opening.wait(); err != nil {
		return nil, err
	}
	return e.backend, nil
}

func (e *experiment) openBackend() error {
	choice := backendChoice{name: e.file.Sandbox, settings: e.file.SandboxSettings, imageDir: e.file.ImageDir, ready: e.file.ReadySandboxes, logger: e.logger}
	backend, err := choice.open()
	if err != nil {
		return err
	}
	e.backend = backend
	return errors.Join(checkLevel(backend.Guarantees(), e.file.Isolation), e.offeredBy(backend, e.file.Network, e.file.Image))
}

// openModel opens the client, and the embedded server in front of it when a policy plays.
func (e *experiment) openModel(context.Context) error {
	f := e.file
	cfg := model.Config{
		Name: f.Model, Temperature: f.Temperature, TopP: f.TopP, MaxTokens: f.MaxTokens, Stream: f.Stream, ToolFormat: cmp.Or(f.ToolFormat, model.ToolFormatAuto), TokenIDs: f.tokenServer(),
		ExtraBody: f.ExtraBody, Headers: f.Headers, Proxy: http.ProxyFromEnvironment, Concurrency: f.Workers, Logger: e.logger,
		Endpoints: f.Endpoints, MinInFlight: f.MinInFlight, MaxInFlight: f.MaxInFlight, Processors: e.processors,
		MaxTokensField: f.MaxTokensField, ReasoningEffort: f.ReasoningEffort, SendReasoning: f.SendReasoning, NoSeed: f.noSeed(),
		ToolChoice: f.ToolChoice, ParallelToolCalls: f.ParallelToolCalls, Provider: f.Provider,
	}
	if err := f.checkToolChoice(e.registry); err != nil {
		return err
	}
	if warning := fitFiles(&cfg, f.Workers, openFiles()); warning != "" {
		e.room = e.processors.Room
		fmt.Fprintln(e.warnings, warning)
	}
	if len(f.Endpoints) == 0 {
		cfg.BaseURL = f.baseURL()
	}
	e.patience(&cfg)
	e.thread(&cfg, "")
	e.pay(&cfg)
	cfg.Window = cmp.Or(f.ContextWindow, cfg.Window)
	if f.Policy != "" {
		if err := e.startServer(&cfg); err != nil {
			return err
		}
	} else {
		var err error
		if cfg.APIKey, err = e.apiKey(f.APIKeyEnv, f.baseURL()); err != nil {
			return err
		}
		if cfg.Headers, cfg.Secrets, err = e.headers(); err != nil {
			return err
		}
	}
	e.sampling = f.sampling(cfg.Name)
	if len(f.Sweep.Model) > 0 {
		return e.openSwept(cfg)
	}
	client, err := e.openClient(cfg)
	if err != nil {
		return err
	}
	return e.openFallbacks(client, cfg)
}

// agent is the model that plays the agent, or all of them.
func (e *experiment) agent() model.Model {
	switch {
	case e.swept != nil:
		return e.swept
	case e.fallen != nil:
		return e.fallen
	}
	return e.clients[0]
}

func (e *experiment) startServer(cfg *model.Config) error {
	if cfg.Name == "" {
		cfg.Name = "scripted-" + e.file.Policy
	}
	if e.tape != nil {
		cfg.BaseURL = "http://tape.invalid/v1"
		return nil
	}
	scriptedConfig := scripted.Config{Policy: e.file.Policy, Skill: e.file.Skill, Seed: e.file.Seed, Model: cfg.Name, Logger: e.logger}
	if e.file.Replay != "" {
		reader, err := journal.OpenReader(journalDir(e.file.Replay))
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
		Model: e.agent(), Registry: e.registry, Sandboxes: e.backend, System: e.system, Ephemeral: e.ephemeral, Prefill: e.prefill,
		Sampling: e.sampling, Sweep: f.sweep(), Disabled: f.DisabledToolsets,
		Limits:  episode.Limits{Turns: f.MaxTurns, Tokens: f.EpisodeTokens, Time: f.EpisodeTimeout},
		Network: sandbox.Network(f.Network), Allow: f.Allow, Image: f.Image, Samples: f.Samples,
		Secrets: f.secrets(e.registry), Results: f.resultLimits(), Guardrails: f.Guardrails,
		Context: e.context(), Spending: rollout.Spending{Prices: f.Prices, Asked: f.models().Agent, USD: f.EpisodeUSD},
		Hooks: e.hooks, Resources: f.limits(), Now: time.Now, Logger: e.logger,
	}
	if e.user != nil { // a nil client in the interface would be no nil model
		player.User = e.user
	}
	return player
}
