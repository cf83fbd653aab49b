package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_hover", moreToolset,
		"Moves the mouse over an element of the page, as for a menu that opens under it."), browserHover))
	add(registry.Define(browserTool("browser_drag", moreToolset,
		"Drags an element of the page onto another one."), browserDrag))
}

type browserHoverArgs struct {
	Ref string `json:"ref" alias:"element" doc:"The element, by its ref from the snapshot, e.g. e12." minlen:"1" maxlen:"500"`
}

type browserHoverResult struct {
	browserResult
	Hovered string `json:"hovered"`
	URL     string `json:"url"`
}

func browserHover(ctx context.Context, env *registry.Env, args browserHoverArgs) (any, error) {
	var result browserHoverResult
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) (err error) {
		result.Hovered, err = p.Hover(ctx, args.Ref)
		return err
	})
	return result, err
}

type browserDragArgs struct {
	From string `json:"from" alias:"ref,source,start" doc:"The element to drag, by its ref." minlen:"1" maxlen:"500"`
	To   string `json:"to" alias:"target,end" doc:"The element to drop it on, by its ref." minlen:"1" maxlen:"500"`
}

type browserDragResult struct {
	browserResult
	Dragged string `json:"dragged"`
	Onto    string `json:"onto"`
	URL     string `json:"url"`
}

func browserDrag(ctx context.Context, env *registry.Env, args browserDragArgs) (any, error) {
	var result browserDragResult
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) (err error) {
		result.Dragged, result.Onto, err = p.Drag(ctx, args.From, args.To)
		return err
	})
	return result, err
}
