package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/browser"
	"trajgen/tools/browser/page"
)

func init() {
	add(registry.Define(browserTool("browser_snapshot", browserToolset,
		"Returns what is on the current page: an indented list of its elements with roles, names, states and values. Those that can be "+
			"acted on have a ref, such as e12 or, in a frame, f2e7. What is in view comes first, and what changed since the last snapshot "+
			"is marked."), browserSnapshot))
}

type browserSnapshotArgs struct {
	Full bool `json:"full,omitempty" doc:"Show the whole page with all of its text, in pages of 8000 characters, instead of what is in view and the rest shortened."`
	Page int  `json:"page,omitempty" doc:"Which page of a full snapshot." default:"1" min:"1" max:"1000"`
}

type browserSnapshotResult struct {
	browserResult
	URL      string `json:"url"`
	Title    string `json:"title,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
	Elements *int   `json:"element_count,omitempty"` // unless a dialog stops the page
	Pages    int    `json:"pages,omitempty"`         // of a full snapshot
}

func browserSnapshot(ctx context.Context, env *registry.Env, args browserSnapshotArgs) (any, error) {
	var result browserSnapshotResult
	var seen page.Snapshot
	report, err := onTab(ctx, env, &result.browserResult, browser.CommandTime, func(ctx context.Context, t *browser.Tab) (err error) {
		if seen, err = t.Page().Snapshot(ctx, page.SnapshotOptions{Full: args.Full, Part: args.Page}); err == nil {
			result.Elements = &seen.Elements
		}
		return err
	}, func() string { return seen.Title + "\n" + seen.Text })
	result.URL, result.Title, result.Snapshot = report.URL, seen.Title, seen.Text
	showed(env, seen.Text)
	if args.Full {
		result.Pages = seen.Parts
	}
	return result, err
}
