package tools

import (
	"context"
	"encoding/json"
	"time"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	tool := browserTool("browser_cdp", cdpToolset,
		"Sends a command of the Chrome DevTools Protocol to the page, e.g. DOM.getDocument or Emulation.setDeviceMetricsOverride. Commands "+
			"of Browser, Target and Fetch are refused, apart from Browser.getVersion and Target.getTargets.")
	tool.Timeout = 6 * time.Minute
	add(registry.Define(tool, browserCDP))
}

type browserCDPArgs struct {
	Method   string          `json:"method" doc:"The command, e.g. Runtime.evaluate" minlen:"3" maxlen:"200"`
	Params   json.RawMessage `json:"params,omitempty" alias:"parameters" doc:"The command's parameters: an object."`
	TargetID string          `json:"target_id,omitempty" alias:"targetId,tab" doc:"The tab, e.g. t2; without it the current one."`
	FrameID  string          `json:"frame_id,omitempty" alias:"frameId" doc:"For Runtime.evaluate: the frame to evaluate in, from Page.getFrameTree; without it the page itself."`
	Timeout  int             `json:"timeout,omitempty" doc:"Seconds that the command has." default:"30" min:"1" max:"300"`
}

type browserCDPResult struct {
	browserResult
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
}

func browserCDP(ctx context.Context, env *registry.Env, args browserCDPArgs) (any, error) {
	result := browserCDPResult{Method: args.Method}
	limit := time.Duration(max(args.Timeout, 1)) * time.Second
	_, err := onTab(ctx, env, &result.browserResult, limit, func(ctx context.Context, t *browser.Tab) (err error) {
		result.Result, err = t.Command(ctx, args.Method, args.Params, args.TargetID, args.FrameID)
		return err
	}, func() string { return string(result.Result) })
	return result, err
}
