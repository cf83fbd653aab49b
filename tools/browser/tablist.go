package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"trajgen/tools/web/source"
)

// TabInfo is a tab, as an agent sees it.
type TabInfo struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Current bool   `json:"current,omitempty"`
}

// What can be done with a tab.
const (
	SwitchTab = "switch"
	CloseTab  = "close"
)

// Tabs does something with a tab, or nothing, and lists what tabs there are.
func (b *Browser) Tabs(ctx context.Context, in Opener, action, id string) (list []TabInfo, report Report, err error) {
	report, err = b.do(ctx, in, func(r *running, current *Tab) error {
		if current.fox != nil {
			return unable("list, switch or close tabs")
		}
		if action != "" {
			t, err := r.named(id, current)
			if err != nil {
				return err
			}
			if action == CloseTab {
				err = r.closeTab(ctx, t)
			} else {
				err = r.showTab(ctx, t)
			}
			if err != nil {
				return err
			}
		}
		list = r.infos(ctx)
		return nil
	})
	return list, report, err
}

// showTab makes a tab the current one.
func (r *running) showTab(ctx context.Context, t *Tab) error {
	_, err := cdp.Call(ctx, r.session, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.target})
	r.tabs.mu.Lock()
	defer r.tabs.mu.Unlock()
	r.tabs.current = t
	return err
}

// closeTab closes a tab and waits until it is gone.
func (r *running) closeTab(ctx context.Context, t *Tab) error {
	r.shut(t.target)
	select {
	case <-t.ctx.Done():
		return nil
	case <-ctx.Done():
		return source.Errorf(source.Agent, "timeout", "the tab %s does not close", t.ID)
	}
}

func (r *running) infos(ctx context.Context) []TabInfo {
	r.tabs.mu.Lock()
	current := r.tabs.current
	r.tabs.mu.Unlock()
	list := []TabInfo{}
	for _, t := range r.list() {
		info := TabInfo{ID: t.ID, URL: t.URL(), Current: t == current}
		if got, err := cdp.Call(ctx, r.session, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: t.target}); err == nil {
			info.Title = got.TargetInfo.Title
		}
		list = append(list, info)
	}
	return list
}
