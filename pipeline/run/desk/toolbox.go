package desk

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// Source says which tools there are: the built-in ones, those of a run file, those of plugins.
type Source struct {
	Path    string
	Plugins []string
	Sandbox run.Backend
	Web     web.Settings // of flags; what they leave out is as in the run file
	Twin    twin.Settings
	Given   func(flag string) bool // whether a flag of the backend was given, which the run file then does not decide
	Logger  *slog.Logger           // gets the warnings of what is opened
}

// Toolbox is what a Source opens.
type Toolbox struct {
	File     run.File
	Registry *registry.Registry
	Choice   run.Backend
	Opened   *run.OpenBackend // nil before Backend
	declared bool             // by a run file
	closers  []func() error
}

// Open makes the registry. No sandbox is opened unless a plugin has to describe itself in one.
func (s *Source) Open(ctx context.Context) (_ *Toolbox, err error) {
	t := &Toolbox{File: run.Default(), Choice: s.Sandbox}
	defer func() {
		if err != nil {
			err = errors.Join(run.AsMistake(err), t.Close())
		}
	}()
	if err := s.Read(t); err != nil {
		return nil, err
	}
	w := &t.File.Web
	w.Mode, w.Recording, w.Corpus = cmp.Or(s.Web.Mode, w.Mode), cmp.Or(s.Web.Recording, w.Recording), cmp.Or(s.Web.Corpus, w.Corpus)
	t.File.Twin.Mode, t.File.Twin.Recording = cmp.Or(s.Twin.Mode, t.File.Twin.Mode), cmp.Or(s.Twin.Recording, t.File.Twin.Recording)
	if err := errors.Join(w.Validate(), t.File.Twin.Validate()); err != nil {
		return nil, err
	}
	if err := t.File.Tools.AddPlugins(s.Plugins); err != nil {
		return nil, err
	}
	var more []registry.Tool
	backend := func() (sandbox.Backend, error) { return t.Backend() }
	recorded, err := twin.Open(t.File.Twin)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, recorded.Close)
	if len(t.File.Tools.Plugins) > 0 {
		set, err := t.File.OpenPlugins(ctx, backend, recorded, s.Logger)
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, set.Close)
		more = set.Tools()
	}
	if len(t.File.MCP.Enabled()) > 0 {
		set, err := t.File.OpenMCP(ctx, backend, recorded, s.Logger, false)
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, set.Close)
		more = append(slices.Clone(more), set.Tools()...)
	}
	t.Registry, err = run.NewRegistry(t.File, more...)
	return t, err
}

// Read reads the run file, if there is one.
func (s *Source) Read(t *Toolbox) error {
	if s.Path == "" {
		return nil
	}
	if err := run.Decode(s.Path, "a run file", &t.File); err != nil {
		return err
	}
	t.declared = true
	t.fromFile(s.Given)
	return nil
}

// fromFile takes the backend from the run file, unless flags override it.
func (t *Toolbox) fromFile(given func(flag string) bool) {
	if !given("sandbox") {
		t.Choice.Name = t.File.Sandbox.Backend
	}
	if !given("image-dir") {
		t.Choice.ImageDir = t.File.Sandbox.ImageDir
	}
	if !given("sandbox-setting") {
		t.Choice.Settings = t.File.Sandbox.Settings
	}
}

// Backend opens the backend at the first call.
func (t *Toolbox) Backend() (*run.OpenBackend, error) {
	if t.Opened != nil {
		return t.Opened, nil
	}
	backend, err := t.Choice.Open()
	if err != nil {
		return nil, err
	}
	t.Opened = backend
	t.closers = append(t.closers, backend.Close)
	return backend, nil
}

// Close closes all that was opened.
func (t *Toolbox) Close() error {
	var errs []error
	for _, closer := range slices.Backward(t.closers) {
		errs = append(errs, closer())
	}
	t.closers = nil
	return errors.Join(errs...)
}
