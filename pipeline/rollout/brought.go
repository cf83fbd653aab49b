package rollout

import (
	"context"
	"errors"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Brought is what a task brings along: the tools of servers that it declares itself.
type Brought interface {
	Tools() []registry.Tool
	// Rows are what the row says of the servers whose tools an episode has.
	Rows(tools []registry.Tool) []episode.MCPServer
	Close() error
}

// bring opens what the task brings along. A subagent has what its parent has.
func (k *kit) bring(ctx context.Context) (err error) {
	k.ep.MCP = nil
	switch {
	case k.parent != nil:
		k.brought = k.parent.kit.brought
	case k.Brings != nil:
		k.brought, err = k.Brings(ctx, k.task, k.sandbox.open)
	}
	_, faulted := errors.AsType[*faultError](err)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !faulted && !errors.Is(err, sandbox.ErrGone):
		return faulty(episode.ToolError, "mcp_down", err)
	case err != nil || k.brought == nil:
		return err
	}
	if err := k.choose(); err != nil { // what the model is shown has these, too
		return err
	}
	k.ep.MCP = k.brought.Rows(k.toolset.Tools())
	return nil
}
