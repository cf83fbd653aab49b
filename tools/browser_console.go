package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/internal/chars"
)

func init() {
	add(registry.Define(browserTool("browser_console", browserToolset,
		"Returns what the current page wrote to its console, and its errors; or, with expression, evaluates JavaScript in the page and "+
			"returns the value."), browserConsole))
}

type browserConsoleArgs struct {
	Clear      bool   `json:"clear,omitempty" doc:"Forget the messages once they are returned."`
	Expression string `json:"expression,omitempty" alias:"script,code,js,javascript" doc:"JavaScript to evaluate, e.g. document.title; a promise is awaited. It has 5 seconds." maxlen:"20000"`
}

type browserConsoleResult struct {
	browserResult
	Messages []browser.Message `json:"messages,omitempty"`
	Dropped  int               `json:"earlier_messages_dropped,omitempty"`
	Count    *int              `json:"count,omitempty"`
	Value    json.RawMessage   `json:"value,omitempty"`
	Cut      string            `json:"value_cut,omitempty"` // the beginning of a value that is too long
}

const maxValue = 20_000 // bytes of a value's JSON

func browserConsole(ctx context.Context, env *registry.Env, args browserConsoleArgs) (any, error) {
	var result browserConsoleResult
	var text string
	_, err := onTab(ctx, env, &result.browserResult, browser.CommandTime, func(ctx context.Context, t *browser.Tab) error {
		if args.Expression == "" {
			result.Messages, result.Dropped = t.Console(args.Clear)
			result.Count = new(len(result.Messages))
			for _, m := range result.Messages {
				text += m.Text + "\n"
			}
			return nil
		}
		value, err := t.Evaluate(ctx, args.Expression)
		if text = string(value); len(value) <= maxValue {
			result.Value = value
		} else {
			result.Cut = chars.First(text, maxValue, "…")
		}
		return err
	}, func() string { return text })
	if result.Cut != "" {
		result.Notes = append(result.Notes, fmt.Sprintf("The value has %d bytes of JSON; its beginning is shown.", len(text)))
	}
	return result, err
}
