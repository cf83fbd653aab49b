package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
)

func init() {
	add(registry.Define(browserTool("browser_navigate", browserToolset,
		"Opens a web page in the browser and returns what is on it: an indented list of its elements. Those that can be acted on have a "+
			"ref, such as e12, for browser_click and browser_type. Only http and https URLs."), browserNavigate))
}

type browserNavigateArgs struct {
	URL string `json:"url" alias:"link,address,uri" doc:"The page to open, e.g. https://example.org/page" minlen:"1" maxlen:"8192"`
}

type browserPage struct {
	browserResult
	URL      string `json:"url"`
	Title    string `json:"title"`
	Status   int    `json:"status,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
	Elements int    `json:"element_count"`
	Settled  *bool  `json:"settled,omitempty"` // false for a page that did not come to rest
}

func browserNavigate(ctx context.Context, env *registry.Env, args browserNavigateArgs) (any, error) {
	return goneTo(ctx, env, func(ctx context.Context, t *browser.Tab) (browser.Arrived, error) { return t.Navigate(ctx, args.URL) })
}

// goneTo goes to another page and shows it.
func goneTo(ctx context.Context, env *registry.Env, goTo func(ctx context.Context, t *browser.Tab) (browser.Arrived, error)) (any, error) {
	var result browserPage
	var seen page.Snapshot
	report, err := onTab(ctx, env, &result.browserResult, browser.NavigationTime, func(ctx context.Context, t *browser.Tab) error {
		arrived, err := goTo(ctx, t)
		if err != nil || arrived.Download {
			return err
		}
		if !arrived.Settled {
			result.Settled = &arrived.Settled
		}
		result.Status = arrived.Status
		seen, err = t.Page().Snapshot(ctx, page.SnapshotOptions{})
		return err
	}, func() string { return seen.Title + "\n" + seen.Text })
	result.URL, result.Title, result.Snapshot, result.Elements = report.URL, report.Title, seen.Text, seen.Elements
	showed(env, seen.Text)
	if len(result.Downloads) > 0 && result.Snapshot == "" {
		result.Notes = append(result.Notes, "What came is a file and not a page: it was downloaded, and the tab shows what it showed before.")
	}
	return result, err
}
