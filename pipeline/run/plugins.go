package run

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"trajgen/sandbox"
	"trajgen/tools/plugin"
	"trajgen/tools/twin"
)

// AddPlugins adds plugins that flags name. They replace those of the same name in the run file.
func (t *Tools) AddPlugins(paths []string) error {
	for _, path := range paths {
		config, err := readPlugin(path)
		if err != nil {
			return fmt.Errorf("--plugin: %w", err)
		}
		t.Plugins = slices.DeleteFunc(slices.Clone(t.Plugins), func(c plugin.Config) bool { return c.Name == config.Name })
		t.Plugins = append(t.Plugins, config)
	}
	return nil
}

// readPlugin makes a declaration from a path. An executable is its own command, and gives the plugin its name.
func readPlugin(path string) (plugin.Config, error) {
	var config plugin.Config
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		if err := Decode(path, "a plugin", &config); err != nil {
			return config, err
		}
		for i, name := range config.Files { // relative to their declaration
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
		return config, fmt.Errorf("%s is not an executable file; describe other plugins in a .yaml file", path)
	}
	base := filepath.Base(path)
	name, _, _ := strings.Cut(base, ".")
	name = strings.TrimLeft(notOfName.ReplaceAllString(strings.ToLower(name), "-"), "-_0123456789")
	return plugin.Config{Name: name, Command: []string{"./" + base}, Files: []string{path}}, nil
}

var notOfName = regexp.MustCompile(`[^a-z0-9_-]+`)

// OpenPlugins asks the plugins for their tools, in a sandbox like those of the run. It calls backend only if a plugin needs a
// sandbox. Those whose calls the twin answers need not be there.
func (f File) OpenPlugins(ctx context.Context, backend func() (sandbox.Backend, error), recorded *twin.Twin, logger *slog.Logger) (
	*plugin.Set, error) {
	return plugin.Open(ctx, f.Tools.Plugins, plugin.Options{
		StateDir: StateDir(), Environ: os.LookupEnv, Logger: logger, Recorded: recorded,
		Sandbox: func(ctx context.Context) (sandbox.Sandbox, error) {
			b, err := backend()
			if err != nil {
				return nil, err
			}
			return b.Open(ctx, sandbox.Spec{ID: "plugins", Image: f.Sandbox.Image, Limits: f.Sandbox.Limits()})
		},
	})
}

// openPlugins opens the run's plugins, and warns of those that run on the runner's machine.
func (s *services) openPlugins(ctx context.Context) error {
	if len(s.File.Tools.Plugins) == 0 {
		return nil
	}
	set, err := s.File.OpenPlugins(ctx, s.backend, s.twin, s.Logger)
	if err != nil {
		return err
	}
	s.plugins = set
	s.closers = append(s.closers, set.Close)
	s.parts.Plugins = set.Digest()
	for _, p := range s.File.Tools.Plugins {
		if p.Where == plugin.WhereRunner && set.Runs(p.Name) {
			fmt.Fprintf(s.warnings, "plugin %s runs on this machine, outside of the sandboxes\n", p.Name)
		}
	}
	return nil
}
