package main

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/twin"
	"trajgen/tools/web"
)

// pluginFlag is for trying a plugin without a run file.
func pluginFlag(flags *pflag.FlagSet, paths *[]string) {
	flags.StringArrayVar(paths, "plugin", nil, "plugin: an executable, or a .yaml file with what a run file says of one in tools: {plugins: [...]}; repeat for more")
}

// toolSource says which tools a command is about: the built-in ones, those of a run file, those of plugins.
type toolSource struct {
	path    string
	plugins []string
	sandbox run.Backend
	web     web.Settings // of flags; what they leave out is as in the run file
	twin    twin.Settings
}

func (s *toolSource) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&s.path, "file", "f", "", "run file (YAML) whose plugins, MCP servers and toolsets are there too")
	pluginFlag(flags, &s.plugins)
	backendFlags(&s.sandbox, flags, "sandbox")
}

// webFlags let a command say what the web tools answer from.
func (s *toolSource) webFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.web.Mode, "web", "",
		"what the web tools and the browser answer from: live, replay or corpus (default: as in the run file, or live)")
	flags.StringVar(&s.web.Recording, "web-recording", "", "with --web replay: the run directory whose web was recorded")
	flags.StringVar(&s.web.Corpus, "corpus", "",
		"with --web corpus, and for search, open and find: an index, bundled, or the URL of a retrieval server")
	flags.StringVar(&s.twin.Mode, "twin", "", "tools that answer from outside of the sandbox: live or replay (default: as in the run file, or live)")
	flags.StringVar(&s.twin.Recording, "twin-recording", "", "with --twin replay: the run directory whose calls were recorded")
}

// toolbox is what a toolSource opens.
type toolbox struct {
	file     run.File
	registry *registry.Registry
	choice   run.Backend
	opened   *run.OpenBackend
	closers  []func() error
}

// open makes the registry. No sandbox is opened unless a plugin has to describe itself in one.
func (s *toolSource) open(cmd *cobra.Command) (_ *toolbox, err error) {
	t := &toolbox{file: run.Default(), choice: s.sandbox}
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), t.close())
		}
	}()
	if err := s.read(cmd, t); err != nil {
		return nil, err
	}
	w := &t.file.Web
	w.Mode, w.Recording, w.Corpus = cmp.Or(s.web.Mode, w.Mode), cmp.Or(s.web.Recording, w.Recording), cmp.Or(s.web.Corpus, w.Corpus)
	t.file.Twin.Mode, t.file.Twin.Recording = cmp.Or(s.twin.Mode, t.file.Twin.Mode), cmp.Or(s.twin.Recording, t.file.Twin.Recording)
	if err := errors.Join(w.Validate(), t.file.Twin.Validate()); err != nil {
		return nil, err
	}
	if err := t.file.Tools.AddPlugins(s.plugins); err != nil {
		return nil, err
	}
	var more []registry.Tool
	backend := func() (sandbox.Backend, error) { return t.backend() }
	recorded, err := twin.Open(t.file.Twin)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, recorded.Close)
	if len(t.file.Tools.Plugins) > 0 {
		set, err := t.file.OpenPlugins(cmd.Context(), backend, recorded, t.logger(cmd))
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, set.Close)
		more = set.Tools()
	}
	if len(t.file.MCP.Enabled()) > 0 {
		set, err := t.file.OpenMCP(cmd.Context(), backend, recorded, t.logger(cmd), false)
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, set.Close)
		more = append(slices.Clone(more), set.Tools()...)
	}
	t.registry, err = run.NewRegistry(t.file, more...)
	return t, err
}

// read reads the run file, if there is one.
func (s *toolSource) read(cmd *cobra.Command, t *toolbox) error {
	if s.path == "" {
		return nil
	}
	if err := run.Decode(s.path, "a run file", &t.file); err != nil {
		return err
	}
	t.fromFile(cmd.Flags())
	return nil
}

// logger shows the warnings of what is opened.
func (*toolbox) logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// use makes the function of a command that opens a toolbox.
func (s *toolSource) use(do func(cmd *cobra.Command, args []string, box *toolbox) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		box, err := s.open(cmd)
		if err != nil {
			return err
		}
		return errors.Join(do(cmd, args, box), box.close())
	}
}

// fromFile takes the backend from the run file, unless flags override it.
func (t *toolbox) fromFile(flags *pflag.FlagSet) {
	if !flags.Changed("sandbox") {
		t.choice.Name = t.file.Sandbox.Backend
	}
	if !flags.Changed("image-dir") {
		t.choice.ImageDir = t.file.Sandbox.ImageDir
	}
	if !flags.Changed("sandbox-setting") {
		t.choice.Settings = t.file.Sandbox.Settings
	}
}

// backend opens the backend at the first call.
func (t *toolbox) backend() (*run.OpenBackend, error) {
	if t.opened != nil {
		return t.opened, nil
	}
	backend, err := t.choice.Open()
	if err != nil {
		return nil, err
	}
	t.opened = backend
	t.closers = append(t.closers, backend.Close)
	return backend, nil
}

func (t *toolbox) close() error {
	var errs []error
	for _, closer := range slices.Backward(t.closers) {
		errs = append(errs, closer())
	}
	t.closers = nil
	return errors.Join(errs...)
}
