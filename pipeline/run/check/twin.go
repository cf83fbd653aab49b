package check

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/mcp"
	"trajgen/tools/plugin"
	"trajgen/tools/twin"
)

// Twinned counts which calls of a run its recording answered.
func Twinned(ctx context.Context, dir string) (twin.Tally, error) {
	reader, err := journal.OpenReader(run.JournalDir(dir))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	tally := twin.Tally{}
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		for i := range ep.Calls {
			tally.Add(&ep.Calls[i])
		}
	}
	return tally, nil
}

// TwinAgainst counts which calls of a run the recording in another one could answer. The calls go through the dispatch again,
// where the recording alone answers.
func TwinAgainst(ctx context.Context, recording, dir string) (_ twin.Tally, err error) {
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	file := m.RunFile
	file.Twin = twin.Settings{Mode: twin.Replay, Recording: recording, MaxMisses: math.MaxInt}
	recorded, err := twin.Open(file.Twin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, recorded.Close()) }()
	toolset, err := twinned(ctx, file, recorded)
	if err != nil {
		return nil, err
	}
	tally := twin.Tally{}
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		answer(ctx, toolset, recorded, ep, tally)
	}
	return tally, nil
}

// twinned are the tools of a run, as far as the recording has who answers.
func twinned(ctx context.Context, file run.File, recorded *twin.Twin) (*registry.Toolset, error) {
	var errs []error
	file.Tools.Plugins = slices.DeleteFunc(slices.Clone(file.Tools.Plugins), func(c plugin.Config) bool {
		_, found, err := recorded.Description(plugin.Outside(c.Name))
		errs = append(errs, err)
		return !found
	})
	file.MCP.Lock = "" // what servers said is in the recording
	file.MCP.Servers = maps.Clone(file.MCP.Servers)
	for name := range file.MCP.Servers {
		_, found, err := recorded.Description(mcp.Outside(name))
		if errs = append(errs, err); !found {
			delete(file.MCP.Servers, name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	none := func() (sandbox.Backend, error) {
		return nil, errors.New("a recorded plugin has tools of the sandbox, too")
	}
	plugins, err := file.OpenPlugins(ctx, none, recorded, nil)
	if err != nil {
		return nil, err
	}
	servers, err := file.OpenMCP(ctx, none, recorded, nil, false)
	if err != nil {
		return nil, errors.Join(err, plugins.Close())
	}
	closed := func(err error) error { return errors.Join(err, servers.Close(), plugins.Close()) }
	reg, err := run.NewRegistry(file, slices.Concat(plugins.Tools(), servers.Tools())...)
	if err != nil {
		return nil, closed(err)
	}
	toolset, err := reg.Select([]string{"all"}, nil)
	return toolset, closed(err)
}

// answer asks for the calls of an episode.
func answer(ctx context.Context, toolset *registry.Toolset, recorded *twin.Twin, ep *episode.Episode, tally twin.Tally) {
	outside := map[string]bool{}
	for _, tool := range toolset.Tools() {
		outside[tool.Name] = tool.Outside != ""
	}
	session := toolset.Session(registry.SessionConfig{Services: []any{recorded.Play(ep.ID, ep.Attempt)}})
	defer session.Close()
	for _, was := range ep.Calls {
		answered, known := outside[was.Name]
		if !known && was.Status != episode.CallUnknownTool {
			tally.Lacks(was.Name)
		}
		if !answered {
			continue
		}
		call := session.Call(ctx, registry.Request{
			ID: was.ID, Parent: was.Parent, Turn: was.Turn, Index: was.Index, Name: was.Name, Arguments: was.RawArguments,
		})
		tally.Add(&call)
	}
}
