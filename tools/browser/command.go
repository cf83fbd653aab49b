package browser

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

const evaluateTime = 5 * time.Second

// Evaluate is the value of an expression in the page, as JSON.
func (t *Tab) Evaluate(ctx context.Context, expression string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, evaluateTime, errBusy)
	defer cancel()
	if t.fox != nil {
		return t.fox.Evaluate(ctx, expression)
	}
	params := runtime.EvaluateParams{
		Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true), UserGesture: new(true),
		Timeout: runtime.TimeDelta(evaluateTime.Milliseconds()),
	}
	got, err := cdp.Call(ctx, t.session, runtime.Evaluate, params)
	if err == nil && got.ExceptionDetails != nil && strings.Contains(exception(got.ExceptionDetails), "await is only valid") {
		params.ReplMode = new(true)
		got, err = cdp.Call(ctx, t.session, runtime.Evaluate, params)
	}
	switch {
	case err != nil && context.Cause(ctx) == errBusy:
		return nil, t.free(evaluateTime)
	case err != nil:
		return nil, protocolError(err)
	case got.ExceptionDetails != nil:
		text := chars.First(exception(got.ExceptionDetails), maxText, "…")
		return nil, source.Errorf(source.Agent, "exception", "%s", text)
	case len(got.Result.Value) == 0:
		text, err := json.Marshal(shown(got.Result))
		return text, err
	}
	return json.RawMessage(got.Result.Value), nil
}

// protocolError is an error that the browser answered with, for the model.
func protocolError(err error) error {
	if e, ok := errors.AsType[*cdproto.Error](err); ok {
		return source.Errorf(source.Agent, "protocol_error", "the browser refuses the command: %s", e.Message)
	}
	return err
}

// What could end the browser, reach around the gate or switch off what the tools rely on is denied. So are whole domains, but for the
// commands in allowed.
var (
	deniedDomains = []string{"Browser", "Target", "Fetch", "ServiceWorker", "Extensions", "PWA", "Tethering"}
	allowed       = []string{"Browser.getVersion", "Target.getTargets"}
	denied        = []string{
		"DOM.setFileInputFiles", "Inspector.disable", "Network.disable", "Network.loadNetworkResource", "Network.setBypassServiceWorker",
		"Network.setRequestInterception", "Page.close", "Page.crash", "Page.disable", "Page.handleJavaScriptDialog",
		"Page.setDownloadBehavior", "Runtime.disable",
	}
)

// Command sends a command of the protocol to a tab: "" is this one. A frame is for Runtime.evaluate.
func (t *Tab) Command(ctx context.Context, method string, params json.RawMessage, tab, frame string) (json.RawMessage, error) {
	if t.fox != nil {
		return nil, unable("take commands of the Chrome DevTools Protocol")
	}
	domain, _, ok := strings.Cut(method, ".")
	if !ok || slices.Contains(denied, method) || slices.Contains(deniedDomains, domain) && !slices.Contains(allowed, method) {
		return nil, source.Errorf(source.Agent, "denied", "the command %q is not allowed here; use the browser's other tools", method)
	}
	values := map[string]any{}
	if len(params) > 0 && json.Unmarshal(params, &values) != nil {
		return nil, source.Errorf(source.Agent, "invalid_params", "params is not a JSON object")
	}
	to, err := t.running.tabs.named(tab, t)
	if err != nil {
		return nil, err
	}
	if url, ok := values["url"].(string); ok && method == "Page.navigate" {
		if err := t.running.browser.address(url); err != nil {
			return nil, err
		}
	}
	if frame != "" {
		world, err := cdp.Call(ctx, to.session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(frame)})
		if err != nil {
			return nil, protocolError(err)
		}
		values["contextId"] = world.ExecutionContextID
	}
	var result jsonv2.Value
	if err := to.session.Call(ctx, method, values, &result); err != nil {
		return nil, protocolError(err)
	}
	return json.RawMessage(result), nil
}
