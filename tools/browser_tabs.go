package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_tabs", moreToolset,
		"Lists the tabs of the browser, or switches to one, or closes one. The other browser tools act on the current tab."), browserTabs))
}

type browserTabsArgs struct {
	Action string `json:"action,omitempty" doc:"list, switch (to tab) or close (tab, or without one the current tab)." enum:"list,switch,close" default:"list"`
	Tab    string `json:"tab,omitempty" alias:"tab_id,id,target_id" doc:"The tab, e.g. t2."`
}

type browserTabsResult struct {
	browserResult
	Tabs []browser.TabInfo `json:"tabs"`
}

func browserTabs(ctx context.Context, env *registry.Env, args browserTabsArgs) (any, error) {
	if args.Action == "list" {
		args.Action = ""
	}
	if args.Action == browser.SwitchTab && args.Tab == "" {
		return nil, registry.Failf("invalid_arguments", "tab is missing: name the tab to switch to, e.g. t2")
	}
	var result browserTabsResult
	_, err := withBrowser(ctx, env, &result.browserResult, func(ctx context.Context, b *browser.Browser) (report browser.Report, err error) {
		result.Tabs, report, err = b.Tabs(ctx, env.Sandbox, args.Action, args.Tab)
		return report, err
	}, func() (text string) {
		for _, t := range result.Tabs {
			text += t.Title + "\n"
		}
		return text
	})
	return result, err
}
