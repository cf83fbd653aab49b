package browser

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"trajgen/tools/web/source"
)

// Times that a command has.
const (
	CommandTime    = 30 * time.Second
	NavigationTime = 60 * time.Second
)

// Report is what happened while a command ran.
type Report struct {
	Counts
	Mode      string     `json:"mode"`
	Browser   string     `json:"browser,omitempty"`
	Provider  string     `json:"provider,omitempty"` // of a browser that is not in the sandbox
	Before    string     `json:"url_before"`
	URL       string     `json:"url"`
	Title     string     `json:"-"`
	Tab       string     `json:"tab,omitempty"`
	NewTabs   []string   `json:"new_tabs,omitempty"`
	Refused   int        `json:"tabs_refused,omitempty"`
	Downloads []Download `json:"downloads,omitempty"`
	Told      []Dialog   `json:"-"`              // dialogs that were answered without the agent
	Pending   *Dialog    `json:"-"`              // the dialog that waits for the agent
	Note      string     `json:"note,omitempty"` // what became of the browser before
}

// Do runs a command on the current tab, which is opened if there is none. One command runs at a time. The command's context ends
// after a while, when a dialog opens, and when the page crashes. While a dialog waits, the command does not run.
//
// An error is a *source.Error, one that f returned, or one of the sandbox.
func (b *Browser) Do(ctx context.Context, in Opener, limit time.Duration, f func(ctx context.Context, t *Tab) error) (Report, error) {
	return b.do(ctx, in, func(_ *running, t *Tab) error { return t.command(ctx, limit, f) })
}

// do does something while nothing else is done, and tells what happened.
func (b *Browser) do(ctx context.Context, in Opener, f func(r *running, t *Tab) error) (Report, error) {
	report := Report{Mode: b.cfg.View.Mode()}
	select {
	case b.use <- struct{}{}:
		defer func() { <-b.use }()
	case <-ctx.Done():
		return report, context.Cause(ctx)
	}
	defer b.rests()
	r, err := b.living(ctx, in)
	if err != nil {
		return report, err
	}
	report.Browser, report.Note = r.product, b.noted()
	t, err := r.tab(ctx)
	if err != nil {
		return report, err
	}
	report.Before = t.URL()
	known, _ := r.tabs.now()
	r.gate.forget()
	t.mu.Lock()
	t.aborted = false
	t.mu.Unlock()
	err = f(r, t)
	t.mu.Lock()
	aborted := t.aborted
	t.mu.Unlock()
	if aborted {
		r.downloads.awaitFirst(ctx)
	}
	if errors.Is(err, errDialog) {
		err = nil
	}
	r.tell(ctx, &report, known)
	return report, err
}

func (b *Browser) noted() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	note := b.note
	b.note = ""
	return note
}

// said remembers a dialog that was answered without the agent, and what the next call has to say of it.
func (b *Browser) said(d Dialog, note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told, b.note = append(b.told, d), cmp.Or(note, b.note)
}

// tell says what happened.
func (r *running) tell(ctx context.Context, report *Report, known []*Tab) {
	all, t := r.tabs.now()
	for _, t := range all {
		if !slices.Contains(known, t) {
			report.NewTabs = append(report.NewTabs, t.ID)
		}
	}
	b := r.browser
	b.mu.Lock()
	report.Told, b.told = b.told, nil
	b.mu.Unlock()
	report.Downloads = r.downloads.take(ctx)
	report.Refused = r.tabs.turnedAway()
	if e, ok := r.proc.(*rented); ok {
		report.Provider = e.remote.Provider
	}
	if t != nil {
		report.URL, report.Title, report.Pending = t.URL(), t.title(ctx), t.dialogs.waiting()
		if t.fox == nil {
			report.Tab = t.ID
		}
	}
	report.Counts = b.tally.take()
}

// title is the title of the tab's page.
func (t *Tab) title(ctx context.Context) string {
	if t.fox != nil {
		return t.fox.Title(ctx)
	}
	got, err := cdp.Call(ctx, t.running.session, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: t.target})
	if err != nil {
		return ""
	}
	return got.TargetInfo.Title
}

// command runs f on the tab. A page that does not answer is stopped, or else its tab closed.
func (t *Tab) command(ctx context.Context, limit time.Duration, f func(ctx context.Context, t *Tab) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errBusy)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t.mu.Lock()
	if t.lost != nil || t.dialogs.waiting() != nil {
		defer t.mu.Unlock()
		if t.lost != nil {
			return t.lost
		}
		return errDialog
	}
	t.end = end
	t.mu.Unlock()
	err := f(ctx, t)
	t.mu.Lock()
	t.end = nil
	t.mu.Unlock()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errBusy) {
		return t.free(limit)
	}
	return t.running.reason(err)
}

var errBusy = errors.New("the page is busy")

const freeTime = 2 * time.Second // in which a page stops what it does

// free stops the scripts of a page that does not answer, or closes its tab.
func (t *Tab) free(limit time.Duration) error {
	if t.fox != nil {
		return source.Errorf(source.Agent, "timeout", "the page did not answer within %s. Take a snapshot, or open another page.", limit)
	}
	r := t.running
	ctx, cancel := context.WithTimeout(r.life, freeTime)
	defer cancel()
	_, err := cdp.Call(ctx, t.session, runtime.TerminateExecution, cdp.Empty{})
	if err == nil {
		_, err = cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "1"})
	}
	if err == nil {
		return source.Errorf(source.Agent, "timeout", "the page did not answer within %s, and its script was stopped", limit)
	}
	why := source.Errorf(source.Agent, "timeout", "the page did not answer within %s; its tab was closed. Open another page.", limit)
	t.abandon(why)
	return why
}
