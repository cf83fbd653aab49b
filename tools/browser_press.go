package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_press", browserToolset,
		"Presses a key where the focus of the current page is, e.g. Enter, Escape, Tab, ArrowDown, a, Control+a."), browserPress))
}

type browserPressArgs struct {
	Key string `json:"key" doc:"The key, with modifiers before it, e.g. Enter or Control+Shift+z." minlen:"1" maxlen:"100"`
}

type browserPressResult struct {
	browserResult
	URL     string `json:"url"`
	Pressed string `json:"pressed"`
}

func browserPress(ctx context.Context, env *registry.Env, args browserPressArgs) (any, error) {
	result := browserPressResult{Pressed: args.Key}
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) error {
		return p.Press(ctx, args.Key)
	})
	return result, err
}
