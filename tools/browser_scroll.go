package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
)

func init() {
	add(registry.Define(browserTool("browser_scroll", browserToolset,
		"Scrolls the current page by 500 pixels: what is below the mouse, or else the page. The result says when nothing moved."), browserScroll))
}

type browserScrollArgs struct {
	Direction string `json:"direction" doc:"Where to." enum:"up,down"`
	Ref       string `json:"ref,omitempty" alias:"element" doc:"An element, by its ref: scroll it, or what it is in." maxlen:"500"`
}

type browserScrollResult struct {
	browserResult
	URL      string `json:"url"`
	Scrolled string `json:"scrolled"`
	Of       string `json:"of,omitempty"` // what was scrolled
	Moved    int    `json:"moved"`        // pixels
	Top      int    `json:"top"`          // pixels above what is in view
	Height   int    `json:"height"`       // pixels in all
}

func browserScroll(ctx context.Context, env *registry.Env, args browserScrollArgs) (any, error) {
	result := browserScrollResult{Scrolled: args.Direction}
	var did page.Scrolled
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) (err error) {
		did, err = p.Scroll(ctx, args.Direction == "down", args.Ref)
		return err
	})
	result.Of, result.Moved, result.Top, result.Height = did.Of, did.Moved, did.Top, did.Height
	if did.Note != "" {
		result.Notes = append(result.Notes, did.Note)
	}
	return result, err
}
