package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/internal/secrets"
)

// Where a plugin runs.
const (
	WhereSandbox = "sandbox"
	WhereRunner  = "runner"
)

// Config declares a plugin.
type Config struct {
	Name string `yaml:"name"`
	// Command is the program and its arguments. It starts in the directory of Files.
	Command []string `yaml:"command"`
	// Files are files and folders of the runner that are copied into the plugin's directory, under their base names.
	Files []string `yaml:"files,omitempty"`
	Where string   `yaml:"where,omitempty"` // sandbox (the default) or runner
	// Toolset that the tools belong to; the default is plugin-NAME.
	Toolset string `yaml:"toolset,omitempty"`
	// Override lets its tools replace others with the same name.
	Override bool              `yaml:"override,omitempty"`
	Env      map[string]string `yaml:"env,omitempty"`
	// EnvFrom names variables of the runner's environment that a plugin on the runner gets. They are treated as secrets.
	EnvFrom []string `yaml:"env_from,omitempty"`
	// Scripts lets scripts of execute_code call the tools, as functions made from their parameters.
	Scripts bool `yaml:"scripts,omitempty"`
	// Timeout bounds each call, even if the plugin asks for more.
	Timeout time.Duration `yaml:"timeout,omitempty"`
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// Validate returns all errors in a run's plugins.
func Validate(configs []Config) error {
	var errs []error
	seen := map[string]bool{}
	for i, c := range configs {
		name := c.Name
		if !namePattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("plugin %q: a name is a small letter and up to 39 small letters, digits, '_' and '-'", name))
		}
		if name == "" {
			name = fmt.Sprintf("number %d", i+1)
		}
		if seen[c.Name] {
			errs = append(errs, fmt.Errorf("plugin %s is declared twice", name))
		}
		seen[c.Name] = true
		for _, err := range c.problems() {
			errs = append(errs, fmt.Errorf("plugin %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (c Config) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Command) == 0 || c.Command[0] == "" {
		bad("no command: want [PROGRAM, ARGUMENT, ...]")
	}
	if strings.ContainsRune(strings.Join(c.Command, ""), 0) {
		bad("the command has a zero byte")
	}
	if c.Where != "" && c.Where != WhereSandbox && c.Where != WhereRunner {
		bad("where is %q; sandbox or runner", c.Where)
	}
	if strings.ContainsAny(c.Toolset, " \t\n,") {
		bad("toolset %q: a name has no white space and no comma", c.Toolset)
	}
	if c.Timeout < 0 {
		bad("timeout is %s; not below 0", c.Timeout)
	}
	for _, name := range sortedKeys(c.Env) {
		switch {
		case !sandbox.IsVariable(name):
			bad("env: %q is not a name of a variable", name)
		case strings.ContainsRune(c.Env[name], 0):
			bad("env: %s has a zero byte", name)
		case secrets.Named(name):
			bad("env: %s looks like a secret, and what is under env is written to run.json: put its name under env_from, with where: runner", name)
		}
	}
	for _, name := range c.EnvFrom {
		if !sandbox.IsVariable(name) {
			bad("env_from: %q is not a name of a variable", name)
		}
	}
	if len(c.EnvFrom) > 0 && c.Where != WhereRunner {
		bad("env_from needs where: runner, as an agent can read all that a process of its sandbox knows")
	}
	return errs
}

// toolset returns the toolset of the tools.
func (c Config) toolset() string { return cmp.Or(c.Toolset, "plugin-"+c.Name) }

// identity is the plugin's part of the fingerprint, with defaults filled in. It has the content of files and not their paths.
func (c Config) identity() map[string]any {
	return map[string]any{
		"name": c.Name, "command": c.Command, "where": cmp.Or(c.Where, WhereSandbox), "toolset": c.toolset(), "env": c.Env,
		"env_from": c.EnvFrom, "override": c.Override, "scripts": c.Scripts, "timeout": c.Timeout.String(),
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
