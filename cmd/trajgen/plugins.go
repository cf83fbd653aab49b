package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

// pluginFlag is for trying a plugin without a run file.
func pluginFlag(flags *pflag.FlagSet, paths *[]string) {
	flags.StringArrayVar(paths, "plugin", nil, "plugin: an executable, or a .yaml file with what a run file says of one under plugins; repeat for more")
}

// addPlugins adds plugins that flags name. One takes the place of the run file's of the same name.
func (f *runFile) addPlugins(paths []string) error {
	for _, path := range paths {
		config, err := readPlugin(path)
		if err != nil {
			return fmt.Errorf("--plugin: %w", err)
		}
		f.Plugins = slices.DeleteFunc(slices.Clone(f.Plugins), func(c plugin.Config) bool { return c.Name == config.Name })
		f.Plugins = append(f.Plugins, config)
	}
	return nil
}

// readPlugin makes a declaration of a path. An executable is its own command, and named after itself.
func readPlugin(path string) (plugin.Config, error) {
	var config plugin.Config
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		if err := decodeFile(path, "a plugin", &config); err != nil {
			return config, err
		}
		for i, name := range config.Files { // beside their declaration
			if !filepath.IsAbs(name) {
				config.Files[i] = filepath.Join(filepath.Dir(path), name)
			}
		}
		return config, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return config, err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return config, fmt.Errorf("%s is no executable file; describe other plugins in a .yaml file", path)
	}
	base := filepath.Base(path)
	name, _, _ := strings.Cut(base, ".")
	name = strings.TrimLeft(notOfName.ReplaceAllString(strings.ToLower(name), "-"), "-_0123456789")
	return plugin.Config{Name: name, Command: []string{"./" + base}, Files: []string{path}}, nil
}

var notOfName = regexp.MustCompile(`[^a-z0-9_-]+`)

// openPlugins asks the plugins for their tools, in a sandbox like those of the run. backend is asked for when there is a
// plugin that needs one.
func (f runFile) openPlugins(ctx context.Context, backend func() (sandbox.Backend, error), logger *slog.Logger) (*plugin.Set, error) {
	return plugin.Open(ctx, f.Plugins, plugin.Options{
		StateDir: stateDir(), Environ: os.LookupEnv, Logger: logger,
		Sandbox: func(ctx context.Context) (sandbox.Sandbox, error) {
			b, err := backend()
			if err != nil {
				return nil, err
			}
			return b.Open(ctx, sandbox.Spec{ID: "plugins", Image: f.Image, Limits: f.limits()})
		},
	})
}

// openPlugins opens the run's plugins and says of those on the runner that they are.
func (e *experiment) openPlugins(ctx context.Context) error {
	if len(e.file.Plugins) == 0 {
		return nil
	}
	set, err := e.file.openPlugins(ctx, e.sandboxes, e.logger)
	if err != nil {
		return err
	}
	e.plugins = set
	e.closers = append(e.closers, set.Close)
	e.parts.Plugins = set.Digest()
	for _, p := range e.file.Plugins {
		if p.Where == plugin.WhereRunner {
			fmt.Fprintf(e.warnings, "plugin %s runs on this machine, outside of the sandboxes\n", p.Name)
		}
	}
	return nil
}

// toolSource says which tools a command is about: the built-in ones, those of a run file, those of plugins.
type toolSource struct {
	path    string
	plugins []string
	sandbox backendChoice
}

func (s *toolSource) flags(flags *pflag.FlagSet) {
	flags.StringVarP(&s.path, "file", "f", "", "run file (YAML) whose plugins and toolsets are there too")
	pluginFlag(flags, &s.plugins)
	s.sandbox.flags(flags, "sandbox")
}

// toolbox is what a toolSource opens.
type toolbox struct {
	file     runFile
	registry *registry.Registry
	choice   backendChoice
	opened   *withImages
	closers  []func() error
}

// open makes the registry. No sandbox is opened unless a plugin has to describe itself in one.
func (s toolSource) open(cmd *cobra.Command) (_ *toolbox, err error) {
	t := &toolbox{file: defaultRunFile(), choice: s.sandbox}
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), t.close())
		}
	}()
	if s.path != "" {
		if err := decodeFile(s.path, "a run file", &t.file); err != nil {
			return nil, err
		}
		t.fromFile(cmd.Flags())
	}
	if err := t.file.addPlugins(s.plugins); err != nil {
		return nil, err
	}
	var more []registry.Tool
	if len(t.file.Plugins) > 0 {
		backend := func() (sandbox.Backend, error) { return t.backend() }
		set, err := t.file.openPlugins(cmd.Context(), backend, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		if err != nil {
			return nil, err
		}
		t.closers = append(t.closers, set.Close)
		more = set.Tools()
	}
	t.registry, err = newRegistry(t.file, more...)
	return t, err
}

// fromFile takes the backend from the run file, but for what flags say.
func (t *toolbox) fromFile(flags *pflag.FlagSet) {
	if !flags.Changed("sandbox") {
		t.choice.name = t.file.Sandbox
	}
	if !flags.Changed("image-dir") {
		t.choice.imageDir = t.file.ImageDir
	}
	if !flags.Changed("sandbox-setting") {
		t.choice.settings = t.file.SandboxSettings
	}
}

// backend opens the backend at the first call.
func (t *toolbox) backend() (*withImages, error) {
	if t.opened != nil {
		return t.opened, nil
	}
	backend, err := t.choice.open()
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
