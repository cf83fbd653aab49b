package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/registry"
)

// NoopTools are tools with the names and schemas of those given, which return at once what the standard episode would
// have got. Everything around them is as it is with the real ones.
func NoopTools(real []registry.Tool) ([]registry.Tool, error) {
	var tools []registry.Tool
	for _, t := range real {
		tool, err := registry.DefineSchema(registry.Definition{
			Name: t.Name, Toolset: t.Toolset, Description: t.Description, Emoji: t.Emoji, Timeout: t.Timeout, MaxResult: t.MaxResult,
			Reader: t.Reader, Untrusted: t.Untrusted, NoSandbox: true, Access: t.Access, Describe: t.Describe, Reshape: t.Reshape, Override: true,
		}, t.Parameters, func(_ context.Context, env *registry.Env, _ json.RawMessage) (any, error) {
			if env.Turn >= len(calls) {
				return nil, fmt.Errorf("turn %d is none of the standard episode", env.Turn)
			}
			return json.RawMessage(calls[env.Turn].result), nil
		})
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}
