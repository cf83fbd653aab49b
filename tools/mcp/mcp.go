// Package mcp gives agents the tools of MCP servers.
//
// A server is a command, which runs in the sandbox of the episode, or a URL. It is asked for its tools once, when the run opens:
// what a model is shown never changes within a run, whatever the server says later. It is connected by the first call of one of its
// tools, and ends with the episode.
//
// Everything that a server says is hostile: names, schemas, descriptions, results and their number.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/internal/program"
	"trajgen/tools/mcp/osv"
	"trajgen/tools/twin"
)

// Options are shared by the servers of a run.
type Options struct {
	// Sandbox opens a sandbox: one in which servers say what they have, and one for those that are shared.
	Sandbox func(ctx context.Context, id string) (sandbox.Sandbox, error)
	// Environ looks up a variable of the runner's environment.
	Environ func(name string) (string, bool)
	Anew    bool // ignore the lock file
	// Recorded may answer calls instead of the servers: those that it answers for are neither started nor asked. Nil is none.
	Recorded *twin.Twin
	Now      func() time.Time
	Logger   *slog.Logger // nil logs nothing
}

// Set is the servers of a run, safe for concurrent use by all its episodes.
type Set struct {
	settings Settings
	opts     Options
	servers  []*server
	tools    []registry.Tool
	warnings []string

	mu  sync.Mutex // guards what follows
	own sandbox.Sandbox
}

// server is a declared server.
type server struct {
	set       *Set
	name      string
	cfg       Server
	declared  string // digest
	files     []sandbox.FileWrite
	packages  []osv.Package // that are known to be in it, sorted
	env       []string
	described *Described
	version   string // digest of that
	recorded  bool   // it never runs
	ofTask    bool   // it is declared by a task, among whose files it starts
	shared    *live  // of one that is shared

	headers   map[string]string
	transport http.RoundTripper
	oauth     *oneFlight
	breaker   *breaker
}

// Open reads what servers need and asks them what they have, all at once.
func Open(ctx context.Context, settings Settings, opts Options) (_ *Set, err error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	s := newSet(settings, opts)
	opts = s.opts
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var lock *Lock
	if settings.Lock != "" && !opts.Anew {
		if lock, err = readLock(settings.Lock); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, name := range settings.Enabled() {
		server := &server{set: s, name: name, cfg: settings.Servers[name]}
		err := server.recall(lock)
		if err == nil && !server.recorded {
			err = server.load()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("mcp server %s: %w", name, err))
		}
		s.servers = append(s.servers, server)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := s.advised(ctx); err != nil {
		return nil, err
	}
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	if lock != nil {
		if err := lock.check(s.servers); err != nil {
			return nil, err
		}
	}
	return s, s.define()
}

func newSet(settings Settings, opts Options) *Set {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Set{settings: settings, opts: opts}
}

// load reads what a declaration names.
func (s *server) load() (err error) {
	if s.files, err = program.ReadFiles(s.cfg.Files); err != nil {
		return err
	}
	if err := s.unpack(); err != nil {
		return err
	}
	for _, name := range sortedKeys(s.cfg.Env) {
		s.env = append(s.env, name+"="+s.cfg.Env[name])
	}
	for _, name := range s.cfg.EnvAllow {
		if value, ok := s.set.opts.Environ(name); ok {
			s.env = append(s.env, name+"="+value)
		}
	}
	parts := []any{s.cfg, s.env}
	for _, file := range s.files {
		parts = append(parts, file.Path, file.Mode.String(), hash(file.Data))
	}
	identity := s.cfg
	identity.Files = nil // their content counts, and not where it lies
	parts[0] = identity
	s.declared = hash(encoded(parts))
	if s.cfg.URL != "" {
		err = s.open(s.set.opts)
	}
	if s.cfg.Shared {
		s.shared = newLive(s, s.set.opts.Logger, episode.Key{})
	}
	return err
}

// ask asks the servers what they have.
func (s *Set) ask(ctx context.Context) (err error) {
	var box sandbox.Sandbox
	if slices.ContainsFunc(s.servers, func(each *server) bool { return each.cfg.URL == "" && !each.recorded }) {
		if box, err = s.opts.Sandbox(ctx, "mcp"); err != nil {
			return fmt.Errorf("open a sandbox to ask mcp servers for their tools: %w", err)
		}
		defer func() { err = errors.Join(err, box.Close()) }()
	}
	return s.askAll(ctx, func(context.Context) (sandbox.Sandbox, error) { return box, nil })
}

// askAll asks the servers, several at once. box opens where processes run.
func (s *Set) askAll(ctx context.Context, box opener) error {
	errs := make([]error, len(s.servers))
	var group errgroup.Group
	group.SetLimit(4)
	for i, each := range s.servers {
		if each.recorded {
			continue
		}
		group.Go(func() error {
			if _, err := each.askOnce(ctx, box); err != nil {
				errs[i] = fmt.Errorf("mcp server %s: %w", each.name, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// askOnce asks over a connection that serves nothing else. It returns how many lines of its output were no messages.
func (s *server) askOnce(ctx context.Context, box opener) (noise int64, err error) {
	limited, cancel := s.cfg.connecting(ctx)
	defer cancel()
	c, err := s.dial(limited, box)
	if err == nil {
		defer c.close(ctx)
		s.described, err = s.ask(limited, c)
		noise = c.noise.Load()
	}
	if err != nil && limited.Err() != nil {
		err = errors.Join(context.Cause(limited), err)
	}
	return noise, err
}

// define makes the tools of all servers.
func (s *Set) define() error {
	var errs []error
	taken := map[string]string{} // shown name → server
	for _, each := range s.servers {
		each.version = each.described.digest()
		var own []registry.Tool
		for _, t := range each.described.Tools {
			if len(t.Suspicious) > 0 && t.Refused == "" {
				text := fmt.Sprintf("mcp server %s: the description of %s reads like an attack on the model (%s)",
					each.name, t.Name, t.Suspicious[0])
				if s.settings.RefuseSuspicious {
					errs = append(errs, errors.New(text))
				}
				s.warnings = append(s.warnings, text)
			}
			if t.Refused != "" {
				s.warnings = append(s.warnings, fmt.Sprintf("mcp server %s: tool %q is left out: %s", each.name, t.Name, t.Refused))
				continue
			}
			tool, err := each.define(t)
			if err != nil {
				return fmt.Errorf("mcp server %s: %w", each.name, err)
			}
			own = append(own, tool)
		}
		more, err := each.utilities(each.described)
		if err != nil {
			return err
		}
		for _, tool := range append(own, more...) {
			if other, met := taken[tool.Name]; met {
				errs = append(errs, fmt.Errorf("mcp servers %s and %s both have a tool %s: name one of them differently",
					other, each.name, tool.Name))
			}
			taken[tool.Name] = each.name
			s.tools = append(s.tools, tool)
		}
	}
	return errors.Join(errs...)
}

// definition is what the tools of a server have in common.
func (s *server) definition(name, description string, readOnly bool) registry.Definition {
	d := registry.Definition{
		Name: name, Toolset: Toolset(s.name), Description: cmp.Or(description, "A tool of the MCP server "+s.name+"."),
		Timeout: s.cfg.timeout() + s.cfg.connectTimeout() + pingTime, MaxResult: s.cfg.MaxResult,
		NoSandbox: !s.cfg.inEpisode(), Untrusted: "mcp:" + s.name,
		Outside: Outside(s.name), Version: s.version, ReadOnly: readOnly, Replayed: s.replayed,
	}
	if s.cfg.Parallel {
		d.Access = func(json.RawMessage) registry.Access { return registry.Access{} }
	}
	return d
}

// define makes a tool.
func (s *server) define(t Tool) (registry.Tool, error) {
	return registry.DefineSchema(s.definition(t.Shown, t.Description, t.ReadOnly), t.Parameters,
		func(ctx context.Context, env *registry.Env, arguments json.RawMessage) (any, error) {
			r := request{t.Name, t.Idempotent, arguments}
			return s.call(env, r, func(call *inCall) (any, error) { return call.callTool(ctx, t) })
		})
}

// Tools returns the servers' tools, in the order of the servers' names.
func (s *Set) Tools() []registry.Tool { return s.tools }

// Warnings are what the operator should know of the servers.
func (s *Set) Warnings() []string { return s.warnings }

// Names are the servers' names, sorted.
func (s *Set) Names() []string {
	var names []string
	for _, each := range s.servers {
		names = append(names, each.name)
	}
	return names
}

// Described is what a server said of itself.
func (s *Set) Described(name string) *Described {
	for _, each := range s.servers {
		if each.name == name {
			return each.described
		}
	}
	return nil
}

// Digest identifies the servers by how they are declared and by what they said of themselves.
func (s *Set) Digest() string {
	if len(s.servers) == 0 {
		return ""
	}
	var parts []any
	for _, each := range s.servers {
		parts = append(parts, each.name, each.described)
	}
	return "sha256:" + hash(encoded(parts))[:16]
}

// Rows are what an episode's row says of the servers whose tools it has.
func (s *Set) Rows(tools []registry.Tool) []episode.MCPServer {
	var rows []episode.MCPServer
	for _, each := range s.servers {
		if !slices.ContainsFunc(tools, func(t registry.Tool) bool { return t.Toolset == Toolset(each.name) }) {
			continue
		}
		d := each.described
		rows = append(rows, episode.MCPServer{
			Declared: each.name, Name: d.Name, Version: d.Version, Protocol: d.Protocol,
			SHA256: d.digest(), Shared: each.cfg.Shared,
		})
	}
	return rows
}

// box is the sandbox of the shared servers.
func (s *Set) box(ctx context.Context) (sandbox.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		box, err := s.opts.Sandbox(ctx, "mcp-shared")
		if err != nil {
			return nil, &registry.Failure{
				Class: "mcp_down", Status: episode.CallUnavailable, Broken: true,
				Message: "no sandbox for shared mcp servers: " + err.Error(),
			}
		}
		s.own = box
	}
	return s.own, nil
}

// forget gives up a sandbox of the shared servers that was lost.
func (s *Set) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != nil {
		_ = s.own.Close() // it is gone
		s.own = nil
	}
}

// Close ends the shared servers. It is idempotent.
func (s *Set) Close() (err error) {
	for _, each := range s.servers {
		if each.shared != nil {
			each.shared.close()
		}
		if idle, ok := each.transport.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != nil {
		err = s.own.Close()
		s.own = nil
	}
	return err
}
