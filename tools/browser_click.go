package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_click", browserToolset,
		"Clicks an element of the current page, or selects an option of a list. The result says whether another page, a tab, a dialog or a "+
			"download came of it; browser_snapshot shows the page afterwards."), browserClick))
}

type browserClickArgs struct {
	Ref string `json:"ref" alias:"element,selector,target" doc:"The element, by its ref from the snapshot, e.g. e12, or by role and name, e.g. button \"Send\"." minlen:"1" maxlen:"500"`
}

type browserClickResult struct {
	browserResult
	URL     string `json:"url"`
	Clicked string `json:"clicked"`
}

func browserClick(ctx context.Context, env *registry.Env, args browserClickArgs) (any, error) {
	var result browserClickResult
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) (err error) {
		result.Clicked, err = p.Click(ctx, args.Ref)
		return err
	})
	return result, err
}
