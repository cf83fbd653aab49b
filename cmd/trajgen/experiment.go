package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"trajgen/datasets"
	"trajgen/distributions"
	"trajgen/outputs"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/reward"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
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
	backend  sandbox.Backend
	server   *scripted.Server // nil without a policy
	client   *model.Client
	tasks    int
	badRows  int
	surveyed bool
	parts    experimentParts
	system   string
	closers  []func() error
}

// open opens a validated run file. w gets the warnings.
func (f runFile) open(ctx context.Context, w io.Writer, logger *slog.Logger) (_ *experiment, err error) {
	e := &experiment{file: f, warnings: w, logger: logger, draws: map[string]*distributions.Distribution{}}
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), e.close())
		}
	}()
	for _, step := range []func(context.Context) error{e.openPrompt, e.openRegistry, e.openDataset, e.openSandbox, e.openModel, e.survey} {
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
	var err error
	if e.registry, err = newRegistry(e.file.CustomToolsets); err != nil {
		return err
	}
	if _, err := e.registry.Resolve(e.file.fixedToolsets(), e.file.DisabledToolsets); err != nil {
		return err
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

// drawDigest names what a distribution draws; its description may be mended.
func drawDigest(d *distributions.Distribution) string {
	content, err := json.Marshal(d.Toolsets)
	if err != nil {
		return err.Error()
	}
	return digest(d.Name, content)
}

func rawTexts(raw []json.RawMessage) [][]byte {
	texts := make([][]byte, len(raw))
	for i, r := range raw {
		texts[i] = r
	}
	return texts
}

// newRegistry is the built-in tools and the run file's toolsets.
func newRegistry(custom map[string]registry.ToolsetDef) (*registry.Registry, error) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil || len(custom) == 0 {
		return reg, err
	}
	return reg.WithToolsets(custom)
}

// distribution resolves a name or path once, and checks that its toolsets exist.
func (e *experiment) distribution(ctx context.Context, name string) (*distributions.Distribution, error) {
	if known, ok := e.draws[name]; ok {
		return known, nil
	}
	d, err := distributions.Resolve(name)
	if err != nil {
		return nil, err
	}
	if err := d.Validate(toolsetKnown(e.registry)); err != nil {
		return nil, fmt.Errorf("distribution %s: %w", d.Name, err)
	}
	e.draws[name] = &d
	return &d, e.warnOfToolless(ctx, d)
}

// warnOfToolless says which of a distribution's toolsets have no tool in this version: what they are drawn for is
// recorded, but the model is shown nothing for them.
func (e *experiment) warnOfToolless(ctx context.Context, d distributions.Distribution) error {
	var empty []string
	for _, share := range d.Toolsets {
		toolset, err := e.registry.Select(ctx, []string{share.Toolset}, e.file.DisabledToolsets)
		if err != nil {
			return err
		}
		if len(toolset.Names()) == 0 {
			empty = append(empty, share.Toolset)
		}
	}
	if len(empty) == len(d.Toolsets) {
		return fmt.Errorf("distribution %s: none of its toolsets has a tool that is available here: %s", d.Name, strings.Join(empty, ", "))
	}
	if len(empty) > 0 {
		fmt.Fprintf(e.warnings, "distribution %s draws toolsets without an available tool: %s\n", d.Name, strings.Join(empty, ", "))
	}
	return nil
}

func toolsetKnown(reg *registry.Registry) func(string) bool {
	return func(name string) bool {
		_, err := reg.Resolve([]string{name}, nil)
		return err == nil
	}
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
	backend, err := openBackend(e.file.Sandbox, e.logger)
	if err != nil {
		return err
	}
	e.backend = backend
	e.closers = append(e.closers, backend.Close)
	return errors.Join(e.offersNetwork(e.file.Network), e.offersImage(e.file.Image))
}

func (e *experiment) offersNetwork(network string) error {
	offered := e.backend.Guarantees().Network
	if network == "" || slices.Contains(offered, sandbox.Network(network)) {
		return nil
	}
	return fmt.Errorf("network %q is not offered by the %s sandbox (it has %v)", network, e.file.Sandbox, offered)
}

func (e *experiment) offersImage(image string) error {
	if image == "" {
		return nil
	}
	return fmt.Errorf("image %q: the %s sandbox has none but the host's toolchain; leave image out", image, e.file.Sandbox)
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

// skipped reports broken rows, each once: the dataset is read again when it is played.
func (e *experiment) skipped() func(*datasets.RowError) {
	const most = 20
	return func(bad *datasets.RowError) {
		if e.surveyed {
			return
		}
		// Lines are held in memory until the run directory is there, so there must not be millions.
		if e.badRows++; e.badRows <= 1000 {
			e.logger.Warn("row skipped", "error", bad.Error())
		}
		switch {
		case e.badRows <= most:
			fmt.Fprintf(e.warnings, "skipped: %s\n", bad)
		case e.badRows == most+1:
			fmt.Fprintln(e.warnings, "further broken rows are in log.jsonl, up to a thousand")
		}
	}
}

// survey reads the dataset once before anything is paid for: it counts the tasks, checks what they ask for, and
// teaches the scripted server their solutions.
func (e *experiment) survey(ctx context.Context) error {
	sum, err := e.source.Digest(ctx)
	if err != nil {
		return err
	}
	e.parts.Dataset = sum
	const most = 20
	var problems []error
	for task, err := range e.source.Tasks(ctx) {
		if err != nil {
			return err
		}
		e.tasks++
		if err := e.suits(ctx, task); err != nil && len(problems) < most {
			problems = append(problems, fmt.Errorf("task %s (row %d): %w", task.ID, task.Row+1, err))
		}
		if e.server != nil {
			e.server.Learn(task)
		}
	}
	e.surveyed = true
	for _, name := range slices.Sorted(maps.Keys(e.draws)) {
		if name != e.file.Distribution {
			e.parts.Tasks = strings.TrimSpace(e.parts.Tasks + " " + drawDigest(e.draws[name]))
		}
	}
	return errors.Join(problems...)
}

// suits says why a task cannot be played here.
func (e *experiment) suits(ctx context.Context, task *episode.Task) error {
	var problems []error
	if len(task.Toolsets) > 0 {
		_, err := e.registry.Resolve(task.Toolsets, nil)
		problems = append(problems, err)
	}
	if task.Distribution != "" {
		_, err := e.distribution(ctx, task.Distribution)
		problems = append(problems, err)
	}
	for _, check := range task.Verify {
		_, err := reward.Kind(check)
		problems = append(problems, err)
	}
	if task.Cwd != "" && !path.IsAbs(task.Cwd) {
		problems = append(problems, fmt.Errorf("cwd %q is not an absolute path", task.Cwd))
	}
	for _, name := range slices.Sorted(maps.Keys(task.Env)) {
		if !envName.MatchString(name) {
			problems = append(problems, fmt.Errorf("env: %q is no name of a variable", name))
		}
	}
	return errors.Join(append(problems, e.offersNetwork(task.Network), e.offersImage(task.Image))...)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// draw says what a task's episodes may use: what the task says, else what the run says.
func (e *experiment) draw(task *episode.Task) (pipeline.Toolsets, error) {
	switch {
	case len(task.Toolsets) > 0:
		return pipeline.Toolsets{Fixed: slices.Sorted(slices.Values(task.Toolsets))}, nil
	case task.Distribution != "":
		return pipeline.Toolsets{Distribution: e.draws[task.Distribution]}, nil
	case e.file.Distribution != "":
		return pipeline.Toolsets{Distribution: e.draws[e.file.Distribution]}, nil
	}
	return pipeline.Toolsets{Fixed: slices.Sorted(slices.Values(e.file.fixedToolsets()))}, nil
}

// player is what plays the experiment's episodes.
func (e *experiment) player() *rollout.Player {
	f := e.file
	return &rollout.Player{
		Model: e.client, Registry: e.registry, Sandboxes: e.backend, System: e.system, Disabled: f.DisabledToolsets,
		Limits:  episode.Limits{Turns: f.MaxTurns, Tokens: f.EpisodeTokens, Time: f.EpisodeTimeout},
		Network: sandbox.Network(f.Network), Image: f.Image,
		Resources: sandbox.Limits{Memory: int64(f.Memory), Processes: f.Processes, Disk: int64(f.Disk)},
		Now:       time.Now, Logger: e.logger,
	}
}

// inOrder yields the tasks as they are played.
func (e *experiment) inOrder(ctx context.Context) iter.Seq2[*episode.Task, error] {
	if !e.file.Shuffle {
		return e.source.Tasks(ctx)
	}
	return func(yield func(*episode.Task, error) bool) {
		var all []*episode.Task
		for task, err := range e.source.Tasks(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, task)
		}
		order := rand.New(rand.NewPCG(e.file.Seed, 0))
		order.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, task := range all {
			if !yield(task, nil) {
				return
			}
		}
	}
}
