package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/mcp"
	"trajgen/tools/twin"
)

// OpenMCP asks the MCP servers what they have; commands run in sandboxes like those of the run. Those whose calls the twin, which
// may be nil, answers need not be there. With anew the lock file does not count.
func (f *File) OpenMCP(ctx context.Context, backend func() (sandbox.Backend, error), recorded *twin.Twin, logger *slog.Logger,
	anew bool) (*mcp.Set, error) {
	return mcp.Open(ctx, f.MCP, mcp.Options{
		Environ: os.LookupEnv, Now: time.Now, Logger: logger, Anew: anew, Recorded: recorded,
		Sandbox: func(ctx context.Context, id string) (sandbox.Sandbox, error) {
			b, err := backend()
			if err != nil {
				return nil, err
			}
			spec := sandbox.Spec{ID: fmt.Sprintf("%s-%d", id, os.Getpid()), Image: f.Sandbox.Image, Limits: f.Sandbox.Limits()}
			return b.Open(ctx, spec)
		},
	})
}

// openMCP opens the run's MCP servers, and says what the operator should know of them.
func (e *Experiment) openMCP(ctx context.Context) (err error) {
	if len(e.File.MCP.Enabled()) == 0 {
		return nil
	}
	if e.mcp, err = e.File.OpenMCP(ctx, e.sandboxes, e.twin, e.Logger, false); err != nil {
		return err
	}
	e.closers = append(e.closers, e.mcp.Close)
	e.parts.MCP = e.mcp.Digest()
	for _, warning := range e.mcp.Warnings() {
		fmt.Fprintln(e.warnings, warning)
	}
	for _, name := range e.File.MCP.Enabled() {
		if s := e.File.MCP.Servers[name]; s.Shared && !s.Stateless && e.mcp.Runs(name) {
			fmt.Fprintf(e.warnings, "mcp server %s is shared: what it keeps of one episode, others may see (stateless: true says that "+
				"it keeps nothing)\n", name)
		}
	}
	return nil
}

// openSampling opens the models that servers may ask.
func (e *Experiment) openSampling(context.Context) error {
	e.sampled = map[string]model.Model{}
	for _, name := range e.File.MCP.Enabled() {
		s := e.File.MCP.Servers[name].Sampling
		if s == nil || !e.mcp.Runs(name) {
			continue
		}
		client, err := e.openSide(sideModel{record.Sampling, e.sampledName(name), s.BaseURL, s.APIKeyEnv}, model.Config{
			Settings: model.Settings{MaxTokens: cmp.Or(s.MaxTokens, mcp.SampledTokens)},
			Patience: model.Patience{Timeout: e.File.Requests.Timeout, Retries: 2},
		})
		if err != nil {
			return fmt.Errorf("mcp server %s: %w", name, err)
		}
		e.sampled[name] = client
	}
	return nil
}

// sampledName is the name of the model that a server may ask.
func (e *Experiment) sampledName(server string) string {
	return cmp.Or(e.File.MCP.Servers[server].Sampling.Model, e.File.Model.Name)
}

// taskToolsets are the toolsets of the MCP servers that a task names, and of those that it thereby does without.
func (e *Experiment) taskToolsets(task *episode.Task) (more, without []string) {
	if len(task.MCP) == 0 {
		return nil, nil
	}
	for _, name := range e.File.MCP.Enabled() {
		if slices.Contains(task.MCP, name) {
			more = append(more, mcp.Toolset(name))
		} else {
			without = append(without, mcp.Toolset(name))
		}
	}
	return more, without
}

// mcpOf is what an attempt has of the MCP servers; its row says so.
func (e *Experiment) mcpOf(task *episode.Task, ep *episode.Episode, ask model.Ask) *mcp.Attempt {
	more, without := e.taskToolsets(task)
	toolset, err := e.Registry.Select(slices.Concat(ep.Toolsets, more), slices.Concat(e.File.Tools.DisabledToolsets, without))
	if err == nil { // the rollout selects them, too, and says what is wrong
		ep.MCP = e.mcp.Rows(toolset.Tools())
	}
	return &mcp.Attempt{
		Side: e.side(ep, "mcp sampling", ask), Servers: ep.MCP,
		Model: func(server string) (model.Model, string) { return e.sampled[server], e.sampledName(server) },
	}
}

// withMCP adds the toolset NAME of each MCP server, where that name is free: it means the same as mcp-NAME.
func withMCP(reg *registry.Registry, f File) (*registry.Registry, error) {
	aliases := map[string]registry.ToolsetDef{}
	for _, name := range f.MCP.Enabled() {
		_, custom := f.Tools.CustomToolsets[name]
		_, unknown := reg.Resolve([]string{name}, nil)
		_, none := reg.Resolve([]string{mcp.Toolset(name)}, nil)
		if !custom && unknown != nil && none == nil {
			aliases[name] = registry.ToolsetDef{
				Description: "Tools of the MCP server " + name, Includes: []string{mcp.Toolset(name)},
			}
		}
	}
	return reg.WithToolsets(aliases)
}
