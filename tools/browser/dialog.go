package browser

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

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
	maxDialogs       = 5               // of one page, before its tab is closed
	maxDialogMessage = 2000            // characters
	maxAnswerTime    = 5 * time.Minute // that a dialog waits for the agent
	dismissed        = "dismissed"
)

func (c *Config) answerTime() time.Duration { return cmp.Or(c.patience, maxAnswerTime) }

var errHostile = source.Errorf(source.Agent, "hostile_page",
	"the page opened more than %d dialogs; its tab was closed. Open another page.", maxDialogs)

// errDialog ends the command that goes on when a dialog opens: it would wait until the dialog is answered.
var errDialog = source.Errorf(source.Agent, "dialog", "a dialog of the page is open")

// dialogs are a tab's: those that it has shown, and the one that waits for an answer.
type dialogs struct {
	tab *Tab

	mu    sync.Mutex  // guards the rest
	open  *Dialog     // the one that waits
	limit *time.Timer // dismisses it
	since int         // how many there were since the page came
	all   int
}

// opening takes a dialog. The tab's mu is held. It returns why the tab must not go on, if that is so.
func (d *dialogs) opening(e *page.EventJavascriptDialogOpening) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, r := d.tab, d.tab.running
	d.since++
	d.all++
	r.browser.tally.add(func(c *Counts) { c.Dialogs++ })
	came := &Dialog{
		ID: fmt.Sprintf("%s-d%d", t.ID, d.all), Type: string(e.Type), Message: chars.First(e.Message, maxDialogMessage, "…"),
		Default: chars.First(e.DefaultPrompt, maxDialogMessage, "…"),
	}
	switch {
	case e.Type == page.DialogTypeBeforeunload:
		came.Action = "accepted"
		r.goes(func() { d.handle(r.life, true, "") })
	case d.since > maxDialogs:
		return errHostile
	case !r.browser.cfg.Answers:
		came.Action = dismissed
		r.goes(func() { d.handle(r.life, false, "") })
	default:
		d.open = came
		d.limit = time.AfterFunc(r.browser.cfg.answerTime(), func() { r.goes(func() { d.expire(came) }) })
		if t.end != nil {
			t.end(errDialog)
		}
		return nil
	}
	r.browser.said(*came, "")
	return nil
}

// closed forgets the dialog that waited.
func (d *dialogs) closed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open = nil; d.limit != nil {
		d.limit.Stop()
	}
}

// page begins to count anew.
func (d *dialogs) page() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = 0
}

// waiting is the dialog that waits for an answer; nil without one.
func (d *dialogs) waiting() *Dialog {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// expire dismisses a dialog that has waited for too long.
func (d *dialogs) expire(late *Dialog) {
	r := d.tab.running
	if d.waiting() != late || d.handle(r.life, false, "") != nil {
		return
	}
	d.closed()
	said := *late
	said.Action = dismissed
	limit := r.browser.cfg.answerTime()
	r.browser.said(said, fmt.Sprintf("The dialog %s was not answered within %s and was dismissed.", late.ID, limit))
}

// handle answers the dialog that is open.
func (d *dialogs) handle(ctx context.Context, accept bool, text string) error {
	ctx, cancel := context.WithTimeout(ctx, tabTime)
	defer cancel()
	answer := page.HandleJavaScriptDialogParams{Accept: accept, PromptText: text}
	_, err := cdp.Call(ctx, d.tab.session, page.HandleJavaScriptDialog, answer)
	return err
}

// Answer answers the dialog of the current tab.
func (b *Browser) Answer(
	ctx context.Context, in Opener, id string, accept bool, text string,
) (answered Dialog, report Report, err error) {
	report, err = b.do(ctx, in, func(r *running, t *Tab) error {
		d := t.dialogs.waiting()
		switch {
		case d == nil:
			return source.Errorf(source.Agent, "no_dialog", "no dialog is open on the page")
		case id != "" && id != d.ID:
			return source.Errorf(source.Agent, "no_dialog", "there is no dialog %q; %s is open", shorten(id), d.ID)
		}
		if accept && text == "" {
			text = d.Default
		}
		if err := t.dialogs.handle(ctx, accept, text); err != nil {
			return err
		}
		answered = *d
		// The page goes on, and perhaps to its next dialog.
		return t.command(ctx, CommandTime, func(ctx context.Context, t *Tab) error {
			_, err := t.Settle(ctx)
			return err
		})
	})
	return answered, report, err
}
