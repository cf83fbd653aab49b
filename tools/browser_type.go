package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_type", browserToolset,
		"Writes a text into a field of the current page, in place of what it holds. Dates are written as 2026-11-23, times as 14:30; for a "+
			"combobox of options, write the option's text."), browserType))
}

type browserTypeArgs struct {
	Ref    string `json:"ref" alias:"element,selector,target" doc:"The field, by its ref from the snapshot, e.g. e12, or by role and name, e.g. textbox \"Name\"." minlen:"1" maxlen:"500"`
	Text   string `json:"text" alias:"value,content" doc:"What the field shall hold; an empty text clears it." maxlen:"100000"`
	Submit bool   `json:"submit,omitempty" alias:"press_enter" doc:"Press Enter afterwards."`
}

type browserTypeResult struct {
	browserResult
	URL     string `json:"url"`
	Typed   string `json:"typed"` // of a password only its length
	Element string `json:"element"`
	Value   string `json:"value,omitempty"` // what the field holds, where that is something else
}

func browserType(ctx context.Context, env *registry.Env, args browserTypeArgs) (any, error) {
	var result browserTypeResult
	err := act(ctx, env, &result.browserResult, &result.URL, func(ctx context.Context, p browser.Page) error {
		typed, err := p.Type(ctx, args.Ref, args.Text, args.Submit)
		result.Typed, result.Element, result.Value = typed.Text, typed.Element, typed.Value
		return err
	})
	return result, err
}
