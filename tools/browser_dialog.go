package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
)

func init() {
	add(registry.Define(browserTool("browser_dialog", cdpToolset,
		"Answers the dialog (alert, confirm, prompt) that the current page has open. The page waits until then."), browserDialog))
}

type browserDialogArgs struct {
	Action     string `json:"action" doc:"accept presses OK, dismiss presses Cancel." enum:"accept,dismiss"`
	PromptText string `json:"prompt_text,omitempty" alias:"text,promptText" doc:"What to enter into a prompt before it is accepted; without it, what stands there already." maxlen:"10000"`
	DialogID   string `json:"dialog_id,omitempty" alias:"id,dialogId" doc:"The dialog's id, from pending_dialogs; without it, the one that is open."`
}

type browserDialogResult struct {
	browserResult
	Action string         `json:"action"`
	Dialog browser.Dialog `json:"dialog"`
	URL    string         `json:"url"`
}

func browserDialog(ctx context.Context, env *registry.Env, args browserDialogArgs) (any, error) {
	result := browserDialogResult{Action: args.Action}
	answer := func(ctx context.Context, b *browser.Browser) (report browser.Report, err error) {
		result.Dialog, report, err = b.Answer(ctx, env.Sandbox, args.DialogID, args.Action == "accept", args.PromptText)
		return report, err
	}
	report, err := withBrowser(ctx, env, &result.browserResult, answer)
	result.URL = report.URL
	return result, err
}
