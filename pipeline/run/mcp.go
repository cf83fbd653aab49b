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
	"trajgen/pipeline/rollout"
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
func (s *services) openMCP(ctx context.Context) (err error) {
	if len(s.File.MCP.Enabled()) == 0 {
		return nil
	}
	if s.mcp, err = s.File.OpenMCP(ctx, s.backend, s.twin, s.Logger, false); err != nil {
		return err
	}
	s.closers = append(s.closers, s.mcp.Close)
	s.parts.MCP = s.mcp.Digest()
	for _, warning := range s.mcp.Warnings() {
		fmt.Fprintln(s.warnings, warning)
	}
	for _, name := range s.File.MCP.Enabled() {
		if c := s.File.MCP.Servers[name]; c.Shared && !c.Stateless && s.mcp.Runs(name) {
			fmt.Fprintf(s.warnings, "mcp server %s is shared: what it keeps of one episode, others may see (stateless: true says that "+
				"it keeps nothing)\n", name)
		}
	}
	return nil
}

// openSampling opens the models that servers may ask, and gives attempts the servers: their rows say which these are.
func (s *services) openSampling(context.Context) error {
	sampled := map[string]model.Model{}
	for _, name := range s.File.MCP.Enabled() {
		asked := s.File.MCP.Servers[name].Sampling
		if asked == nil || !s.mcp.Runs(name) {
			continue
		}
		client, err := s.openSide(sideModel{record.Sampling, s.sampledName(name), asked.BaseURL, asked.APIKeyEnv}, model.Config{
			Settings: model.Settings{MaxTokens: cmp.Or(asked.MaxTokens, mcp.SampledTokens)},
			Patience: model.Patience{Timeout: s.File.Requests.Timeout, Retries: 2},
		})
		if err != nil {
			return fmt.Errorf("mcp server %s: %w", name, err)
		}
		sampled[name] = client
	}
	s.made(func(a attempt) []any {
		if s.mcp == nil && len(a.task.Servers) == 0 {
			return nil
		}
		more, without := s.taskToolsets(a.task)
		toolset, err := s.Registry.Select(slices.Concat(a.ep.Toolsets, more), slices.Concat(s.File.Tools.DisabledToolsets, without))
		if err == nil && s.mcp != nil { // the rollout selects them, too, and says what is wrong
			a.ep.MCP = append(a.ep.MCP, s.mcp.Rows(toolset.Tools())...) // to those that the task declares
		}
		return []any{&mcp.Attempt{
			Side: s.side(a.ep, "mcp sampling", a.ask), Servers: a.ep.MCP, Key: a.ep.Key,
			Model: func(server string) (model.Model, string) { return sampled[server], s.sampledName(server) },
		}}
	})
	return nil
}

// sampledName is the name of the model that a server may ask.
func (s *services) sampledName(server string) string {
	return cmp.Or(s.File.MCP.Servers[server].Sampling.Model, s.File.Model.Name)
}

// brings opens the servers that a task declares itself.
func (s *services) brings(ctx context.Context, task *episode.Task, box func(context.Context) (sandbox.Sandbox, error)) (
	rollout.Brought, error) {
	if len(task.Servers) == 0 {
		return nil, nil
	}
	own, err := s.File.MCP.OfTask(task.Servers)
	if err != nil {
		return nil, err
	}
	set, err := mcp.OpenTask(ctx, own, mcp.Options{Environ: os.LookupEnv, Now: time.Now, Logger: s.Logger}, box)
	if err != nil { // a nil set would make an interface that is not nil
		return nil, err
	}
	return set, nil
}

// taskToolsets are the toolsets of the run's MCP servers that a task names, and of those that it thereby does without.
func (s *services) taskToolsets(task *episode.Task) (more, without []string) {
	if len(task.MCP) == 0 && len(task.Servers) == 0 {
		return nil, nil
	}
	for _, name := range s.File.MCP.Enabled() {
		if slices.Contains(task.MCP, name) {
			more = append(more, mcp.Toolset(name))
		} else {
			without = append(without, mcp.Toolset(name))
		}
	}
	return more, without
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
