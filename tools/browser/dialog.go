package browser

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// Dialog is a message that a page shows, and with which it waits.
type Dialog struct {
	ID      string `json:"id"`
	Type    string `json:"type"` // alert, confirm, prompt or beforeunload
	Message string `json:"message"`
	Default string `json:"default,omitempty"` // of a prompt
	Action  string `json:"action,omitempty"`  // accepted or dismissed, where that was done already
}

const (
	maxDialogs       = 5    // of one page, before its tab is closed
	maxDialogMessage = 2000 // characters
)

var errHostile = source.Errorf(source.Agent, "hostile_page",
	"the page opened more than %d dialogs; its tab was closed. Open another page.", maxDialogs)

// errDialog ends the command that goes on when a dialog opens: it would wait until the dialog is answered.
var errDialog = source.Errorf(source.Agent, "dialog", "a dialog of the page is open")

// opening takes a dialog. t.mu is held. It returns why the tab must not go on, if that is so.
func (t *Tab) opening(e *page.EventJavascriptDialogOpening) error {
	r := t.running
	t.dialogs++
	t.count++
	r.gate.tally.add(func(c *Counts) { c.Dialogs++ })
	d := &Dialog{
		ID: fmt.Sprintf("%s-d%d", t.ID, t.count), Type: string(e.Type), Message: chars.First(e.Message, maxDialogMessage, "…"),
		Default: chars.First(e.DefaultPrompt, maxDialogMessage, "…"),
	}
	switch {
	case e.Type == page.DialogTypeBeforeunload:
		d.Action = "accepted"
		r.goes(func() { t.handle(r.life, true, "") })
	case t.dialogs > maxDialogs:
		return errHostile
	case !r.browser.cfg.Answers:
		d.Action = "dismissed"
		r.goes(func() { t.handle(r.life, false, "") })
	default:
		t.dialog = d
		if t.end != nil {
			t.end(errDialog)
		}
		return nil
	}
	r.browser.said(*d)
	return nil
}

// handle answers the dialog that is open.
func (t *Tab) handle(ctx context.Context, accept bool, text string) error {
	ctx, cancel := context.WithTimeout(ctx, tabTime)
	defer cancel()
	_, err := cdp.Call(ctx, t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: accept, PromptText: text})
	return err
}

// Answer answers the dialog of the current tab.
func (b *Browser) Answer(
	ctx context.Context, in Opener, id string, accept bool, text string,
) (Dialog, Report, error) {
	var answered Dialog
	report, err := b.do(ctx, in, func(r *running, t *Tab) error {
		t.mu.Lock()
		d := t.dialog
		t.mu.Unlock()
		switch {
		case d == nil:
			return source.Errorf(source.Agent, "no_dialog", "no dialog is open on the page")
		case id != "" && id != d.ID:
			return source.Errorf(source.Agent, "no_dialog", "there is no dialog %q; %s is open", shorten(id), d.ID)
		}
		if accept && text == "" {
			text = d.Default
		}
		if err := t.handle(ctx, accept, text); err != nil {
			return err
		}
		answered = *d
		t.mu.Lock()
		if t.dialog == d {
			t.dialog = nil
		}
		t.mu.Unlock()
		// The page goes on, and perhaps to its next dialog.
		return t.command(ctx, CommandTime, func(ctx context.Context, t *Tab) error {
			_, err := t.Settle(ctx)
			return err
		})
	})
	return answered, report, err
}
