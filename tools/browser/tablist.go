package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"trajgen/tools/web/source"
)

const (
	maxTabs   = 8
	pollEvery = 5 * time.Millisecond
)

// tabs are the pages of a browser, in the order in which they came.
type tabs struct {
	mu      sync.Mutex // guards the rest
	all     []*Tab
	current *Tab
	count   int
	refused int // tabs that were one too many
}

// add makes a page the current one. It is false when there are too many.
func (l *tabs) add(t *Tab) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= maxTabs {
		l.refused++
		return false
	}
	l.count++
	t.ID = fmt.Sprintf("t%d", l.count)
	l.all, l.current = append(l.all, t), t
	return true
}

// remove takes out a page. The one that came before it is the current one again.
func (l *tabs) remove(t *Tab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.all, t)
	if i < 0 {
		return
	}
	if l.all = slices.Delete(l.all, i, i+1); l.current == t {
		if l.current = nil; len(l.all) > 0 {
			l.current = l.all[max(i-1, 0)]
		}
	}
}

func (l *tabs) show(t *Tab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = t
}

// now is the tabs as they are now, and the current one.
func (l *tabs) now() (all []*Tab, current *Tab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all), l.current
}

// turnedAway is how many tabs were one too many since it was last asked.
func (l *tabs) turnedAway() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.refused = l.refused, 0
	return n
}

// byTarget waits until the browser has told of a page.
func (l *tabs) byTarget(ctx context.Context, id target.ID) (*Tab, error) {
	for {
		all, _ := l.now()
		if i := slices.IndexFunc(all, func(t *Tab) bool { return t.target == id }); i >= 0 {
			return all[i], nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// named is the tab with an id; "" is another one.
func (l *tabs) named(id string, or *Tab) (*Tab, error) {
	if id == "" {
		return or, nil
	}
	var have []string
	all, _ := l.now()
	for _, t := range all {
		if t.ID == id || string(t.target) == id {
			<-t.ready
			return t, t.failed
		}
		have = append(have, t.ID)
	}
	return nil, source.Errorf(source.Agent, "no_tab", "there is no tab %q; there are %s", shorten(id), strings.Join(have, ", "))
}

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
			t, err := r.tabs.named(id, current)
			if err != nil {
				return err
			}
			if action == CloseTab {
				err = t.close(ctx)
			} else {
				_, err = cdp.Call(ctx, r.session, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.target})
				r.tabs.show(t)
			}
			if err != nil {
				return err
			}
		}
		list = []TabInfo{}
		all, current := r.tabs.now()
		for _, t := range all {
			list = append(list, TabInfo{ID: t.ID, URL: t.URL(), Title: t.title(ctx), Current: t == current})
		}
		return nil
	})
	return list, report, err
}
