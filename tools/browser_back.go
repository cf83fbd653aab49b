package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_back", browserToolset,
		"Goes back to the page that the current tab of the browser showed before, and returns what is on it."), browserBack))
}

type browserBackArgs struct{}

func browserBack(ctx context.Context, env *registry.Env, _ browserBackArgs) (any, error) {
	return goneTo(ctx, env, func(ctx context.Context, t *browser.Tab) (browser.Arrived, error) { return t.Back(ctx) })
}
