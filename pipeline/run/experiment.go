package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"trajgen/datasets"
	"trajgen/outputs/journal"
	"trajgen/outputs/media"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/skills"
)

// Experiment is a run file with everything opened that it names. Errors up to here are for the user to resolve: no episode has
// begun.
type Experiment struct {
	*opened
	models
	draws
	tasks
	services
	prompts  rollout.Prompts // the contents of the section's files
	commands *tools.CommandPolicy
	skills   *skills.Set // nil without any
	builds   *builds     // nil where no task has a Dockerfile
	Played   bool        // every episode is, and a resume only reports

	conditions string // under which tasks are proven
}

// opened is what the parts of an experiment need.
type opened struct {
	File     File
	Logger   *slog.Logger
	Registry *registry.Registry
	Source   *datasets.Source
	opening  func() error // waits until Backend is open; nil before that is begun
	Backend  *OpenBackend
	parts    experimentParts
	warnings io.Writer
	closers  []func() error
	browses  bool        // some episode may have a browser
	images   media.Store // that models are shown
}

// Open opens a validated run file. w gets the warnings.
func (f File) Open(ctx context.Context, w io.Writer, logger *slog.Logger) (_ *Experiment, err error) {
	if err := f.Tools.decideDraw(f.resumed, f.OutDir()); err != nil {
		return nil, err
	}
	on := &opened{File: f, warnings: w, Logger: logger}
	e := &Experiment{
		opened: on,
		models: newModels(on),
		draws:  draws{opened: on, byName: map[string]*drawn{}, fixed: map[string]error{}},
	}
	e.tasks = tasks{opened: on, draws: &e.draws, left: map[string]bool{}, scorers: map[string]bool{}}
	e.services = services{models: &e.models, backend: e.sandboxes}
	e.closers = append(e.closers, on.images.Close)
	e.Room = e.processors.Pace
	defer SetGC(startGC)()
	defer func() {
		if err != nil {
			err = errors.Join(AsMistake(err), e.Close())
		}
	}()
	for _, step := range []func(context.Context) error{
		e.openPrompt, e.openDataset, e.openSandbox, e.openTwin, e.openPlugins, e.openMCP, e.openWeb,
		e.openRegistry, e.openTape, e.openBudget, e.openModel, e.openSummary, e.openUser,
		e.openPages, e.openSampling, e.openMixture, e.openHome, e.openMessages, e.openMedia, e.openLab, e.openFaults,
		e.openCommandPolicy, e.teach, e.survey, e.browse, e.hasSandbox, e.tryImage, e.condition,
	} {
		if err := step(ctx); err != nil {
			if e.opening != nil {
				err = cmp.Or(e.opening(), err) // an error of the backend comes first
			}
			return nil, err
		}
	}
	if lacks, err := e.lacks(ctx); err != nil || !lacks {
		e.Played = !lacks
		return e, err
	}
	for _, probe := range e.probes {
		if err := probe(ctx); err != nil {
			return nil, err
		}
	}
	if err := e.openBuilds(ctx); err != nil {
		return nil, err
	}
	return e, e.bounded()
}

// lacks reports whether any episode is to be played. Without one, a resume only reports, which needs no model.
func (e *Experiment) lacks(ctx context.Context) (bool, error) {
	if !e.File.resumed || e.File.Stepped || e.File.Faults.Twins { // which twins there are is known when the clean episodes have ended
		return true, nil
	}
	reader, err := journal.OpenReader(JournalDir(e.File.OutDir()))
	if err != nil {
		return true, nil // opening it for writing gives the error
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

// onResume defers an error that only matters when a model is asked, until that is certain.
func (m *models) onResume(err error) error {
	if err == nil || !m.File.resumed {
		return err
	}
	m.probes = append(m.probes, func(context.Context) error { return err })
	return nil
}

func (e *Experiment) Close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	if e.opening != nil {
		_ = e.opening() // its error was already reported
	}
	if e.Backend != nil { // last, as the others may have sandboxes open
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
	if e.mcp != nil {
		more = append(slices.Clone(more), e.mcp.Tools()...)
	}
	var err error
	if e.Registry, err = NewRegistry(e.File, more...); err != nil {
		return err
	}
	if err = e.openSkills(ctx); err != nil {
		return err
	}
	if err = errors.Join(e.File.Tools.checkResultLimits(e.Registry), e.File.Twin.Check(e.Registry.Tools())); err != nil {
		return err
	}
	fixed, err := e.Registry.Select(e.File.Tools.fixed(), e.File.Tools.DisabledToolsets)
	if err != nil {
		return err
	}
	if e.File.Tools.Distribution == "" {
		e.mayBrowse(fixed)
	}
	if len(fixed.Names()) == 0 && registry.Promise(e.File.Tools.fixed()) {
		return fmt.Errorf("toolsets %v without %v leave no tool: %s", e.File.Tools.fixed(), e.File.Tools.DisabledToolsets,
			cmp.Or(reasons(fixed.Missing()), "there is none in them"))
	}
	all, err := e.Registry.Select([]string{"all"}, nil)
	if err != nil {
		return err
	}
	var schemas [][]byte
	for _, schema := range all.Schemas() {
		schemas = append(schemas, schema)
	}
	e.parts.Tools = digest("", bytes.Join(schemas, []byte("\n")))
	if e.File.Tools.Distribution == "" {
		return nil
	}
	distribution, err := e.distribution(e.File.Tools.Distribution)
	if err != nil {
		return err
	}
	e.parts.Distribution = drawDigest(distribution.Distribution)
	return nil
}

// openSandbox begins to open the backend in the background: that can take as long as the survey of a large dataset, which
// seldom needs a sandbox.
func (o *opened) openSandbox(context.Context) error {
	o.opening = sync.OnceValue(o.openBackend)
	go func() { _ = o.opening() }() // all who need the backend, and Close, wait for it
	o.warnings = afterwards{o.warnings, o.opening}
	return nil
}

// hasSandbox waits for the backend.
func (o *opened) hasSandbox(context.Context) error { return o.opening() }

// afterwards writes when the work has ended without an error. After an error only the error is reported.
type afterwards struct {
	io.Writer
	work func() error
}

func (a afterwards) Write(p []byte) (int, error) {
	if a.work() != nil {
		return len(p), nil
	}
	return a.Writer.Write(p)
}

// teach makes the scripted server learn the tasks during the survey.
func (e *Experiment) teach(context.Context) error {
	if e.Scripted != nil {
		e.learn = e.Scripted.Learn
	}
	return nil
}

// sandboxes is a backend that waits for Backend to be opened.
func (o *opened) sandboxes() (sandbox.Backend, error) {
	if err := o.opening(); err != nil {
		return nil, err
	}
	return o.Backend, nil
}

func (o *opened) openBackend() error {
	s := o.File.Sandbox
	backend, err := Backend{Name: s.Backend, Settings: s.Settings, ImageDir: s.ImageDir, ImageMap: s.ImageMap, ready: s.Ready, logger: o.Logger}.Open()
	if err != nil {
		return err
	}
	o.Backend = backend
	return errors.Join(checkLevel(backend.Guarantees(), s.Isolation), o.offers(s.Spec()))
}

// offers says why the sandbox does not have what a task, or the run itself, requires.
func (o *opened) offers(spec sandbox.Spec) error {
	if spec.Network == sandbox.NetworkAllowlist && len(spec.Allow) == 0 {
		return errors.New("network allowlist allows nothing: give --allow, such as --allow example.org")
	}
	return o.Backend.Offers(spec)
}

// VerifierOf is the verifier of a run file, for tasks that name none.
func VerifierOf(s *sandbox.VerifierSettings) *episode.Verifier {
	if s == nil {
		return nil
	}
	return &episode.Verifier{
		Sandbox: s.Sandbox, Network: s.Network, Allow: s.Allow, Trust: s.Trust,
		Resources: episode.Resources{Memory: int64(s.Memory), Disk: int64(s.Disk), CPUs: s.CPUs},
	}
}

// Player returns the player of the experiment's episodes.
func (e *Experiment) Player() *rollout.Player {
	f := e.File
	player := &rollout.Player{
		Model: e.agent(), Registry: e.Registry, Prompts: e.prompts,
		Sandboxes: rollout.Sandboxes{Backend: e.Backend, Spec: f.Sandbox.Spec(), Samples: f.Samples, Build: e.buildImage, Verifier: VerifierOf(f.Sandbox.Verifier)},
		Sampling:  e.sampling, Sweep: f.Sweep.Varied(), Web: e.web.Mode(), Disabled: f.Tools.DisabledToolsets, Limits: f.Limits,
		Calls: rollout.Calls{
			Hooks: e.hooks, Secrets: f.Secrets(e.Registry), Results: f.Tools.Results(), Guardrails: guardrails(&f),
			Sees: f.Model.Vision, Images: &e.images,
		},
		Context: e.context(), Spending: rollout.Spending{Prices: f.Budget.Prices, Asked: f.models().Agent}, Delegation: f.Delegation,
		Services: e.services.Of, Toolsets: e.taskToolsets, Brings: e.brings, Now: time.Now, Logger: e.Logger,
	}
	if e.skills != nil {
		player.Skills = e.skillsOf
	}
	if e.user != nil { // a nil client would make a non-nil interface
		player.User = e.user
	}
	return player
}
