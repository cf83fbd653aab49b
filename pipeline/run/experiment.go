package run

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

// Experiment is a run file with everything opened that it names. Whatever is wrong with it is the user's to mend, and
// nothing was started yet.
type Experiment struct {
	File       File
	warnings   io.Writer
	Logger     *slog.Logger
	Source     datasets.Source
	Registry   *registry.Registry
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
	Room       func() <-chan struct{} // for another episode; those beyond what can be in flight need no memory yet
	commands   *tools.CommandPolicy
	summary    *model.Client  // writes summaries; nil without a summary_model
	ledger     *budget.Ledger // nil without a budget
	user       *model.Client  // plays users; nil without a user_model
	Tasks      int
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
	Backend *OpenBackend
	// What else the run puts before a task's prompt.
	ephemeral string
	prefill   []episode.Message
	closers   []func() error
}

// Open opens a validated run file. w gets the warnings.
func (f File) Open(ctx context.Context, w io.Writer, logger *slog.Logger) (_ *Experiment, err error) {
	e := &Experiment{File: f, warnings: w, Logger: logger, draws: map[string]*drawn{}, fixed: map[string]error{}, left: map[string]bool{}, processors: ownProcessors()}
	e.Room = e.processors.Pace
	defer Spare(hasty)()
	defer func() {
		if err != nil {
			err = errors.Join(AsMistake(err), e.Close())
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
func (e *Experiment) lacks(ctx context.Context) (bool, error) {
	if !e.File.resumed {
		return true, nil
	}
	reader, err := journal.OpenReader(JournalDir(e.File.OutDir()))
	if err != nil {
		return true, nil // who opens it to write says why
	}
	defer reader.Close()
	for task, err := range e.Playable(e.Source.InOrder(ctx)) {
		if err != nil {
			return false, err
		}
		for sample := range e.File.Samples {
			entry, played := reader.LastEntry(episode.Key{Seed: e.File.Seed, Task: task.ID, Sample: sample}.ID())
			if !played || (pipeline.Record{Outcome: entry.Outcome, Pending: entry.Pending}).Missing(e.File.Play.RetryErrors) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (e *Experiment) Close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	if e.opening != nil {
		_ = e.opening.wait() // it was said what that came to
	}
	if e.Backend != nil { // after all that may have a sandbox open
		errs = append(errs, e.Backend.Close())
	}
	e.Backend = nil
	return errors.Join(errs...)
}

// openRegistry makes the registry and checks the run's own toolsets and distribution against it.
func (e *Experiment) openRegistry(ctx context.Context) error {
	var more []registry.Tool
	if e.plugins != nil {
		more = e.plugins.Tools()
	}
	var err error
	if e.Registry, err = NewRegistry(e.File, more...); err != nil {
		return err
	}
	if err = e.File.checkResultLimits(e.Registry); err != nil {
		return err
	}
	fixed, err := e.Registry.Select(ctx, e.File.fixedToolsets(), e.File.Tools.DisabledToolsets)
	if err != nil {
		return err
	}
	if len(fixed.Names()) == 0 && registry.Promise(e.File.fixedToolsets()) {
		return fmt.Errorf("toolsets %v without %v leave no tool: %s", e.File.fixedToolsets(), e.File.Tools.DisabledToolsets,
			cmp.Or(reasons(fixed.Missing()), "there is none in them"))
	}
	all, err := e.Registry.Select(ctx, []string{"all"}, nil)
	if err != nil {
		return err
	}
	e.parts.Tools = digest("", bytes.Join(rawTexts(all.Schemas()), []byte("\n")))
	if e.File.Tools.Distribution == "" {
		return nil
	}
	distribution, err := e.distribution(ctx, e.File.Tools.Distribution)
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

func (e *Experiment) openDataset(context.Context) error {
	options := datasets.Options{MaxTasks: e.File.Dataset.MaxTasks, SkipBadRows: e.File.Dataset.SkipBadRows, OnSkip: e.skipped(), OnRepeat: e.repeat, Shape: e.File.Dataset.Shape, Choice: e.File.Choice(), OnChosen: e.chosen, Subset: e.File.Dataset.Subset, Split: e.File.Dataset.Split}
	if e.File.Dataset.Map != "" {
		mapping, err := datasets.LoadMapping(e.File.Dataset.Map)
		if err != nil {
			return err
		}
		options.Map = mapping
		e.parts.Mapping = mapping.Digest()
	}
	source, err := datasets.OpenAll(e.File.Dataset.Path, options)
	if err != nil {
		return err
	}
	e.Source = source
	return nil
}

// openSandbox begins to: that can take as long as the survey of a large dataset, for which it is seldom needed.
func (e *Experiment) openSandbox(context.Context) error {
	e.opening = begin(e.openBackend)
	e.warnings = afterwards{e.warnings, e.opening}
	return nil
}

// hasSandbox waits for the sandboxes.
func (e *Experiment) hasSandbox(context.Context) error { return e.opening.wait() }

// sandboxes are there when they are needed.
func (e *Experiment) sandboxes() (sandbox.Backend, error) {
	if err := e.opening.wait(); err != nil {
		return nil, err
	}
	return e.Backend, nil
}

func (e *Experiment) openBackend() error {
	choice := Backend{Name: e.File.Sandbox.Backend, Settings: e.File.Sandbox.Settings, ImageDir: e.File.Sandbox.ImageDir, ready: e.File.Sandbox.Ready, logger: e.Logger}
	backend, err := choice.Open()
	if err != nil {
		return err
	}
	e.Backend = backend
	return errors.Join(checkLevel(backend.Guarantees(), e.File.Sandbox.Isolation), e.offeredBy(backend, e.File.Sandbox.Network, e.File.Sandbox.Image))
}

// openModel opens the client, and the embedded server in front of it when a policy plays.
func (e *Experiment) openModel(context.Context) error {
	f := e.File
	cfg := model.Config{
		Name: f.Model.Name, Temperature: f.Model.Temperature, TopP: f.Model.TopP, MaxTokens: f.Model.MaxTokens, Stream: f.Model.Stream, ToolFormat: cmp.Or(f.Model.ToolFormat, model.ToolFormatAuto), TokenIDs: f.tokenServer(),
		ExtraBody: f.Model.ExtraBody, Headers: f.Model.Headers, Proxy: http.ProxyFromEnvironment, Concurrency: f.Play.Workers, Logger: e.Logger,
		Endpoints: f.Model.Endpoints, MinInFlight: f.Requests.MinInFlight, MaxInFlight: f.Requests.MaxInFlight, Processors: e.processors,
		MaxTokensField: f.Model.MaxTokensField, ReasoningEffort: f.Model.ReasoningEffort, SendReasoning: f.Model.SendReasoning, NoSeed: f.noSeed(),
		ToolChoice: f.Model.ToolChoice, ParallelToolCalls: f.Model.ParallelToolCalls, Provider: f.Model.Provider,
	}
	if err := f.checkToolChoice(e.Registry); err != nil {
		return err
	}
	if warning := fitFiles(&cfg, f.Play.Workers, openFiles()); warning != "" {
		e.Room = e.processors.Room
		fmt.Fprintln(e.warnings, warning)
	}
	if len(f.Model.Endpoints) == 0 {
		cfg.BaseURL = f.baseURL()
	}
	e.patience(&cfg)
	e.thread(&cfg, "")
	e.pay(&cfg)
	cfg.Window = cmp.Or(f.Context.Window, cfg.Window)
	if f.Scripted.Policy != "" {
		if err := e.startServer(&cfg); err != nil {
			return err
		}
	} else {
		var err error
		if cfg.APIKey, err = e.apiKey(f.Model.APIKeyEnv, f.baseURL()); err != nil {
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
func (e *Experiment) agent() model.Model {
	switch {
	case e.swept != nil:
		return e.swept
	case e.fallen != nil:
		return e.fallen
	}
	return e.clients[0]
}

func (e *Experiment) startServer(cfg *model.Config) error {
	if cfg.Name == "" {
		cfg.Name = "scripted-" + e.File.Scripted.Policy
	}
	if e.tape != nil {
		cfg.BaseURL = "http://tape.invalid/v1"
		return nil
	}
	scriptedConfig := scripted.Config{Policy: e.File.Scripted.Policy, Skill: e.File.Scripted.Skill, Seed: e.File.Seed, Model: cfg.Name, Logger: e.Logger}
	if e.File.Tape.Replay != "" {
		reader, err := journal.OpenReader(JournalDir(e.File.Tape.Replay))
		if err != nil {
			return fmt.Errorf("open the journal to replay: %w", err)
		}
		e.closers = append(e.closers, reader.Close)
		scriptedConfig.Replay = ReplayFrom(reader)
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

// Limits are those of each sandbox.
func (s Sandbox) Limits() sandbox.Limits {
	return sandbox.Limits{Memory: int64(s.Memory), Processes: s.Processes, CPUs: s.CPUs, Disk: int64(s.Disk), Inodes: int64(s.Inodes)}
}

// Player is what plays the experiment's episodes.
func (e *Experiment) Player() *rollout.Player {
	f := e.File
	player := &rollout.Player{
		Model: e.agent(), Registry: e.Registry, Sandboxes: e.Backend, System: e.system, Ephemeral: e.ephemeral, Prefill: e.prefill,
		Sampling: e.sampling, Sweep: f.Varied(), Disabled: f.Tools.DisabledToolsets,
		Limits:  episode.Limits{Turns: f.Limits.Turns, Tokens: f.Limits.Tokens, Time: f.Limits.Time},
		Network: sandbox.Network(f.Sandbox.Network), Allow: f.Sandbox.Allow, Image: f.Sandbox.Image, Samples: f.Samples,
		Secrets: f.Secrets(e.Registry), Results: f.Results(), Guardrails: f.Tools.Guardrails,
		Context: e.context(), Spending: rollout.Spending{Prices: f.Budget.Prices, Asked: f.models().Agent, USD: f.Limits.USD},
		Hooks: e.hooks, Resources: f.Sandbox.Limits(), Now: time.Now, Logger: e.Logger,
	}
	if e.user != nil { // a nil client in the interface would be no nil model
		player.User = e.user
	}
	return player
}
