package tools

import (
	"context"
	"errors"
	"slices"
	"time"

	"trajgen/outputs/log/blobs"
	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// browserTool is what the browser's tools have in common. Each runs alone: they act on one page.
func browserTool(name, toolset, description string) registry.Definition {
	return registry.Definition{
		Name: name, Toolset: toolset, Description: description, Untrusted: "web", Timeout: browser.NavigationTime + 2*time.Minute,
		Memory: browser.Memory,
		Wait: func(ctx context.Context, s *registry.Session) {
			if b, err := browserOf(s); err == nil { // else the call says so
				_ = b.Wait(ctx) // the call finds that the context has ended
			}
		},
	}
}

// browserOf is the episode's browser. A subagent in its parent's sandbox has the parent's: two would not find room in it.
func browserOf(s *registry.Session) (*browser.Browser, error) {
	s = s.Host()
	view, ok := registry.Service[*web.View](s)
	if !ok {
		return nil, registry.Failf("no_web", "this episode has no web")
	}
	return registry.State(s, "tools.browser", func() *browser.Browser {
		shared, _ := registry.Service[browser.Shared](s)
		b := browser.New(browser.Config{
			Shared: shared, View: view, Answers: slices.Contains(s.Toolset().Names(), "browser_dialog"),
		})
		s.OnClose(b.Close)
		return b
	}), nil
}

// browserResult is what the results of the browser's tools have in common.
type browserResult struct {
	Success   bool               `json:"success"`
	Navigated bool               `json:"navigated,omitempty"` // to another page, by what was done
	Pending   []browser.Dialog   `json:"pending_dialogs,omitempty"`
	Dialogs   []browser.Dialog   `json:"dialogs,omitempty"` // that were answered at once
	NewTabs   []string           `json:"new_tabs,omitempty"`
	Downloads []browser.Download `json:"downloads,omitempty"`
	Notes     []string           `json:"notes,omitempty"`
}

// browserAbout is what a call's row says of it.
type browserAbout struct {
	browser.Report
	Threats    []string          `json:"threats,omitempty"`
	Snapshot   string            `json:"snapshot_sha256,omitempty"` // of its text
	Screenshot string            `json:"screenshot_sha256,omitempty"`
	Asked      []episode.Inquiry `json:"asked,omitempty"` // of a vision model
}

// onTab runs a command on the current tab, and says in the result and in the call's row what happened. shown is what of the page the
// model gets to see.
func onTab(ctx context.Context, env *registry.Env, result *browserResult, limit time.Duration,
	f func(ctx context.Context, t *browser.Tab) error, shown ...func() string) (browser.Report, error) {
	return withBrowser(ctx, env, result, func(ctx context.Context, b *browser.Browser) (browser.Report, error) {
		return b.Do(ctx, env.Sandbox, limit, f)
	}, shown...)
}

// withBrowser is onTab for what is not done on a tab.
func withBrowser(ctx context.Context, env *registry.Env, result *browserResult,
	f func(ctx context.Context, b *browser.Browser) (browser.Report, error), shown ...func() string) (browser.Report, error) {
	result.Success = true
	b, err := browserOf(env.Session)
	if err != nil {
		return browser.Report{}, err
	}
	about := &browserAbout{}
	env.Source = about
	counted := env.InSandbox()
	about.Report, err = f(ctx, b)
	counted()
	report := about.Report
	result.tell(report)
	for _, d := range append(result.Dialogs, result.Pending...) {
		about.Threats = suspect(about.Threats, d.Message)
	}
	for _, text := range shown {
		about.Threats = suspect(about.Threats, text())
	}
	view, _ := webView(env)
	if err == nil && report.Misses > 0 && view.Lacking() {
		err = source.Errorf(source.Outage, source.ReplayMiss, "the recording lacks %d requests of the page", report.Misses)
	}
	if err != nil {
		err = browserFailure(view, err, result)
	}
	return report, err
}

// showed says in the call's row which snapshot the model gets.
func showed(env *registry.Env, snapshot string) {
	if about, ok := env.Source.(*browserAbout); ok && snapshot != "" {
		about.Snapshot = blobs.Digest([]byte(snapshot))
	}
}

// tell says what happened beside what was asked for.
func (r *browserResult) tell(report browser.Report) {
	r.Dialogs, r.NewTabs, r.Downloads = report.Told, report.NewTabs, report.Downloads
	note := func(is bool, text string) {
		if is {
			r.Notes = append(r.Notes, text)
		}
	}
	if report.Pending != nil {
		r.Pending = []browser.Dialog{*report.Pending}
	}
	note(report.Pending != nil, "A dialog of the page is open, and the page waits: answer it with browser_dialog.")
	note(len(report.NewTabs) > 0, "A new tab opened and is the current one: "+report.URL)
	note(report.Refused > 0, "A tab that the page opened was closed: there are eight already.")
	note(report.Note != "", report.Note)
}

// browserFailure is what an error of a browser is for the model.
func browserFailure(view *web.View, err error, result *browserResult) error {
	if e, ok := errors.AsType[*page.Error](err); ok {
		err = registry.Failf(e.Class, "%s", e.Message)
	} else {
		err = webFailure(view, err)
	}
	f, ok := errors.AsType[*registry.Failure](err)
	if !ok {
		return err
	}
	if f.Status == "" && f.Class == "unavailable" {
		f.Status = episode.CallUnavailable
	}
	f.Extra = map[string]any{"success": false}
	if len(result.Notes) > 0 {
		f.Extra["notes"] = result.Notes
	}
	if len(result.Dialogs) > 0 {
		f.Extra["dialogs"] = result.Dialogs
	}
	if len(result.Downloads) > 0 {
		f.Extra["downloads"] = result.Downloads
	}
	return f
}

// act does something to what is on the current tab, waits until the page is at rest, and says in the result where the tab is then.
func act(ctx context.Context, env *registry.Env, result *browserResult, url *string,
	do func(ctx context.Context, p browser.Page) error) error {
	begun, other := false, false
	report, err := onTab(ctx, env, result, browser.CommandTime, func(ctx context.Context, t *browser.Tab) error {
		begun = true
		p := t.Page()
		before, err := p.Document(ctx)
		if err != nil {
			return err
		}
		if err := do(ctx, p); err != nil {
			return err
		}
		if _, err := t.Settle(ctx); err != nil {
			return err
		}
		after, err := p.Document(ctx)
		other = after != before
		return err
	})
	if err == nil && !begun {
		f := registry.Failf("dialog_open", "Nothing was done: a dialog of the page is open, and the page waits. Answer it with browser_dialog.")
		f.Extra = map[string]any{"success": false, "pending_dialogs": result.Pending}
		return f
	}
	result.Navigated = other || begun && len(result.NewTabs) == 0 && report.URL != report.Before
	*url = report.URL
	return err
}
