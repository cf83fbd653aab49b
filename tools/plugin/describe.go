package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"trajgen/registry"
	"trajgen/sandbox"
)

// Bounds of a plugin's description.
const (
	describeTime  = 30 * time.Second
	maxTools      = 128
	maxManual     = 16 << 10 // bytes of a description
	maxParameters = 128 << 10
	maxTimeout    = 24 * time.Hour
)

// noParameters is the schema of a tool without parameters.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// describe asks all plugins for their tools.
func (s *Set) describe(ctx context.Context, opts Options) (err error) {
	var box sandbox.Sandbox
	if slices.ContainsFunc(s.plugins, func(p *plugin) bool { return p.runner == nil && !p.recorded }) {
		if box, err = opts.Sandbox(ctx); err != nil {
			return fmt.Errorf("open a sandbox to ask plugins for their tools: %w", err)
		}
		defer func() { err = errors.Join(err, box.Close()) }()
	}
	shared := func(context.Context) (sandbox.Sandbox, error) { return box, nil }
	var errs []error
	from := map[string]string{} // tool → plugin
	for _, p := range s.plugins {
		tools, err := p.describe(ctx, shared, opts.Logger)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: %w", p.cfg.Name, err))
		}
		for _, tool := range tools {
			if other := from[tool.Name]; other == p.cfg.Name {
				errs = append(errs, fmt.Errorf("plugin %s describes tool %s twice", other, tool.Name))
			} else if other != "" {
				errs = append(errs, fmt.Errorf("plugin %s: tool %s is in plugin %s already", p.cfg.Name, tool.Name, other))
			}
			from[tool.Name] = p.cfg.Name
		}
		s.tools = append(s.tools, tools...)
	}
	return errors.Join(errs...)
}

// describe asks one plugin, in a process that serves nothing else.
func (p *plugin) describe(ctx context.Context, shared opener, logger *slog.Logger) ([]registry.Tool, error) {
	if p.recorded {
		return p.define(p.says)
	}
	limited, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	l := newLive(p, logger)
	defer l.close()
	run, err := l.process(limited, l.opener(shared))
	if err != nil {
		return nil, err
	}
	defer run.leave(ctx, 0, true)
	got, err := run.exchange(limited, request{ID: l.last.Add(1), Method: "describe", Protocol: protocolVersion})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, p.withLog(run, fmt.Errorf("it did not answer describe within %s", describeTime))
	default:
		return nil, p.withLog(run, err)
	}
	d, err := got.describes()
	if err != nil {
		return nil, err
	}
	d.ID = 0
	if p.described, err = json.Marshal(d); err != nil {
		return nil, err
	}
	p.says, p.digest = d, digest(p.parts)
	return p.define(d)
}

// withLog adds the plugin's log, for the operator.
func (p *plugin) withLog(run *process, err error) error {
	if text := p.log(run); text != "" {
		return fmt.Errorf("%w; its log ends with:\n%s", err, text)
	}
	return err
}

// define makes the tools.
func (p *plugin) define(d description) ([]registry.Tool, error) {
	if len(d.Tools) > maxTools {
		return nil, fmt.Errorf("it describes %d tools; at most %d", len(d.Tools), maxTools)
	}
	p.concurrent = d.Concurrent
	var tools []registry.Tool
	var errs []error
	for _, entry := range d.Tools {
		tool, err := p.tool(entry)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tools = append(tools, tool)
	}
	return tools, errors.Join(errs...)
}

func (p *plugin) tool(entry toolEntry) (registry.Tool, error) {
	if entry.Description == "" {
		return registry.Tool{}, fmt.Errorf("tool %q has no description, which is all that a model knows of it", entry.Name)
	}
	if len(entry.Description) > maxManual || len(entry.Parameters) > maxParameters {
		return registry.Tool{}, fmt.Errorf("tool %q: a description has at most %d bytes, parameters at most %d", entry.Name, maxManual, maxParameters)
	}
	if entry.TimeoutS < 0 || entry.TimeoutS > maxTimeout.Seconds() {
		return registry.Tool{}, fmt.Errorf("tool %q: timeout_s is %v; from 0 to %v", entry.Name, entry.TimeoutS, maxTimeout.Seconds())
	}
	onRunner := p.cfg.Where == WhereRunner
	definition := registry.Definition{
		Name: entry.Name, Toolset: p.cfg.toolset(), Description: entry.Description, Timeout: p.timeout(entry.TimeoutS),
		NoSandbox: onRunner, Runner: onRunner, Untrusted: entry.Untrusted, Override: p.cfg.Override,
		Script: p.cfg.Scripts, Version: p.digest, ReadOnly: entry.ReadOnly,
	}
	if len(entry.Reads)+len(entry.Writes) == 0 { // one that says which files of the sandbox it works on is the sandbox's own
		definition.Outside = Outside(p.cfg.Name)
	}
	// Without concurrency, the calls of a turn would wait here in random order.
	if p.concurrent && (entry.Reads != nil || entry.Writes != nil) {
		definition.Access = entry.access
	}
	parameters := entry.Parameters
	if len(parameters) == 0 || string(parameters) == "null" {
		parameters = noParameters
	}
	name := entry.Name
	return registry.DefineSchema(definition, parameters,
		func(ctx context.Context, env *registry.Env, arguments json.RawMessage) (any, error) {
			return p.call(ctx, env, name, arguments)
		})
}

// timeout is what the tool asks for, up to the configured limit.
func (p *plugin) timeout(seconds float64) time.Duration {
	asked := time.Duration(seconds * float64(time.Second))
	if most := p.cfg.Timeout; asked == 0 || most > 0 && most < asked {
		return most
	}
	return asked
}

// access returns the paths in arguments: each is a string or a list of strings.
func (t toolEntry) access(arguments json.RawMessage) registry.Access {
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return registry.Access{}
	}
	paths := func(names []string) []string {
		var all []string
		for _, name := range names {
			var one string
			var several []string
			switch {
			case json.Unmarshal(given[name], &one) == nil:
				if one != "" { // null has none, too
					all = append(all, one)
				}
			case json.Unmarshal(given[name], &several) == nil:
				all = append(all, several...)
			}
		}
		return all
	}
	return registry.Access{Reads: paths(t.Reads), Writes: paths(t.Writes)}
}
