// Package plugin runs a user's own tools: executables that speak JSON lines over their standard streams.
//
// # Protocol, version 1
//
// A plugin reads requests from its standard input and writes answers to its standard output, one JSON object per line in
// UTF-8. Its standard error is a log. It stays open until its input ends. The id of a request comes first in its line, so
// that a shell script can read it without a JSON parser:
//
//	{"id":1,"method":"describe","protocol":1}
//	{"id":2,"method":"call","tool":"word_count","arguments":{"path":"a.txt"},"call_id":"call_0"}
//
// The answer to describe lists the tools. It must not depend on anything but the plugin itself, as a run is named after
// it:
//
//	{"id":1,"protocol":1,"concurrent":false,"tools":[
//	  {"name":"word_count","description":"Count the words of a file.",
//	   "parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},
//	   "timeout_s":10,"reads":["path"]}]}
//
// (on one line). Only name and description are required. A tool without parameters takes none. One whose results strangers
// could have written says where they come from, such as "untrusted":"web"; the trace then says so. One whose calls change
// nothing may say "read_only":true, so that recorded calls of it answer more often. A concurrent plugin is sent
// requests while it still works on others and may answer in any order; its tools may say which of their arguments are
// paths that they read and write, so that calls of one turn that cannot conflict run side by side. Empty lists mean that
// the tool touches no file; without lists its calls run alone.
//
// The arguments of a call fit the parameters: they were repaired, coerced and validated before. The answer carries the
// result, any JSON value, or an error that the model is meant to read:
//
//	{"id":2,"result":{"words":12}}
//	{"id":2,"error":{"class":"not_found","message":"there is no a.txt"}}
//
// # Life
//
// A plugin runs in the episode's sandbox, next to what the agent runs there and as the same user: it starts at the first
// call of one of its tools and serves all calls of the episode. Its files are put into a directory of their own at every
// start, whatever lay there before; between two starts an agent with a shell could change them, as it is root in its
// sandbox. The plugin's directory is its working directory and $TRAJGEN_PLUGIN_DIR; the agent's is $TRAJGEN_WORKDIR.
//
// With "where: runner" it runs on the runner's machine instead, without any isolation, in a directory and with an
// environment of its own that holds what its declaration names and nothing else. That is for tools that need secrets.
//
// A call whose time is up, an answer that is not an answer, and an early end cost the plugin its process, with all its
// descendants; the next call starts another. No call is sent twice.
package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/program"
)

// Options are shared by all plugins of a run.
type Options struct {
	// Sandbox opens a sandbox in which plugins describe themselves. It is called once, and only if a plugin runs in sandboxes;
	// Open closes the sandbox.
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	// Environ looks up a variable of the runner's environment, for Config.EnvFrom.
	Environ func(name string) (string, bool)
	// StateDir holds the directories of plugins on the runner; "" is that of sandbox.Options.
	StateDir string
	Logger   *slog.Logger // nil logs nothing
	Recorded Recorded     // optional
}

// Recorded is a recording of plugins' calls. It is used by one goroutine.
type Recorded interface {
	// Description is what Set.Descriptions had of a plugin.
	Description(name string) (description json.RawMessage, found bool, err error)
	// Replays reports whether the recording alone answers calls of a tool.
	Replays(tool string) bool
}

// Set is the plugins of a run, safe for concurrent use by all its episodes.
type Set struct {
	plugins []*plugin
	tools   []registry.Tool
	runner  sandbox.Backend // nil when no plugin runs on the runner
}

// plugin is one plugin, shared by all episodes.
type plugin struct {
	cfg        Config
	files      []sandbox.FileWrite // paths relative to the plugin's directory
	env        []string
	secrets    map[string]string // by variable
	runner     sandbox.Backend   // its backend on the runner, nil in a sandbox
	boxes      atomic.Int64      // names those on the runner
	concurrent bool
	says       description
	described  json.RawMessage // the same, for the digest
	digest     string
	recorded   bool // it never runs
}

// Open reads the plugins' files and asks each for its tools. The tools are fixed for the whole run, even if a plugin later
// describes others.
func Open(ctx context.Context, configs []Config, opts Options) (_ *Set, err error) {
	if err := Validate(configs); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var errs []error
	for _, cfg := range configs {
		p, err := recalled(cfg, opts.Recorded)
		if err == nil && p == nil {
			p, err = s.load(cfg, opts)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: %w", cfg.Name, err))
			continue
		}
		s.plugins = append(s.plugins, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, s.describe(ctx, opts)
}

// load reads a plugin's files and settings.
func (s *Set) load(cfg Config, opts Options) (*plugin, error) {
	p := &plugin{cfg: cfg, secrets: map[string]string{}}
	var err error
	if p.files, err = program.ReadFiles(cfg.Files); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(cfg.Env) {
		p.env = append(p.env, name+"="+cfg.Env[name])
	}
	var errs []error
	for _, name := range cfg.EnvFrom {
		value, ok := opts.Environ(name)
		if !ok {
			errs = append(errs, fmt.Errorf("env_from: the environment has no %s", name))
			continue
		}
		p.env = append(p.env, name+"="+value)
		p.secrets[name] = value
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.Where != WhereRunner {
		return p, nil
	}
	if s.runner == nil {
		if s.runner, err = sandbox.Open("local", sandbox.Options{StateDir: opts.StateDir, Logger: opts.Logger}); err != nil {
			return nil, err
		}
	}
	p.runner = s.runner
	return p, nil
}

// Tools returns the plugins' tools, in the order of the plugins.
func (s *Set) Tools() []registry.Tool { return s.tools }

// Digest identifies the plugins by their configuration, files and tools.
func (s *Set) Digest() string {
	if len(s.plugins) == 0 {
		return ""
	}
	return digest(func(part func(data []byte)) {
		for _, p := range s.plugins {
			if p.recorded {
				part([]byte(p.digest))
			} else {
				p.parts(part)
			}
		}
	})
}

// parts are what a plugin is identified by.
func (p *plugin) parts(part func(data []byte)) {
	config, _ := json.Marshal(p.cfg.identity()) // strings and lists of them
	part(config)
	for _, file := range p.files {
		part([]byte(file.Path))
		part([]byte(file.Mode.String()))
		part(file.Data)
	}
	part(p.described)
}

func digest(parts func(part func(data []byte))) string {
	hash := sha256.New()
	parts(func(data []byte) { fmt.Fprintf(hash, "%d:%s\n", len(data), data) })
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:16]
}

// Close ends processes of plugins on the runner. It is idempotent.
func (s *Set) Close() error {
	if s.runner == nil {
		return nil
	}
	return s.runner.Close()
}
