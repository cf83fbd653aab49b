package tools

import (
	"context"
	"time"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_wait", moreToolset,
		"Waits until a text is on the page, or until it is gone, or for a while."), browserWait))
}

type browserWaitArgs struct {
	Text string `json:"text,omitempty" doc:"The text that must be on the page." maxlen:"1000"`
	Gone string `json:"gone,omitempty" alias:"text_gone" doc:"The text that must not be on the page any more." maxlen:"1000"`
	MS   int    `json:"ms,omitempty" alias:"timeout,time,milliseconds" doc:"Milliseconds to wait at most, or without a text in all." default:"5000" min:"0" max:"10000"`
}

type browserWaitResult struct {
	browserResult
	Found *bool  `json:"found,omitempty"` // what was waited for came about
	URL   string `json:"url"`
}

func browserWait(ctx context.Context, env *registry.Env, args browserWaitArgs) (any, error) {
	if args.Text != "" && args.Gone != "" {
		return nil, registry.Failf("invalid_arguments", "give text or gone, not both")
	}
	var result browserWaitResult
	report, err := onTab(ctx, env, &result.browserResult, browser.CommandTime, func(ctx context.Context, t *browser.Tab) error {
		most := time.Duration(args.MS) * time.Millisecond
		if args.Text == "" && args.Gone == "" {
			select {
			case <-time.After(most):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		found, err := t.Page().Wait(ctx, args.Text+args.Gone, args.Gone != "", most)
		result.Found = &found
		return err
	})
	if result.Found != nil && !*result.Found && len(result.Pending) == 0 {
		result.Notes = append(result.Notes, "It did not come about in time; browser_snapshot shows what is on the page.")
	}
	result.URL = report.URL
	return result, err
}
