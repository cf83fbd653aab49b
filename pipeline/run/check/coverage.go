package check

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// Coverage is what a recording of the web answered in a run, by host of a page or by provider of a search.
type Coverage struct {
	Of     string `json:"of"`
	Hits   int    `json:"hits"`   // pages and searches that the recording answered
	Loose  int    `json:"loose"`  // requests that were answered by one whose URL differs in what caches and trackers read
	Misses int    `json:"misses"` // pages and searches that it lacked something for
}

// Covered reads from a run's journal what its recording answered. The most misses come first.
func Covered(ctx context.Context, dir string) ([]Coverage, error) {
	reader, err := journal.OpenReader(run.JournalDir(dir))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	all := map[string]*Coverage{}
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		for each := range ep.Tree() {
			for i := range each.Calls {
				cover(all, &each.Calls[i])
			}
		}
	}
	list := []Coverage{}
	for _, of := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[of])
	}
	slices.SortStableFunc(list, func(a, b Coverage) int { return cmp.Compare(b.Misses, a.Misses) })
	return list, nil
}

func cover(all map[string]*Coverage, call *episode.ToolCall) {
	var about web.About
	if len(call.Source) == 0 || json.Unmarshal(call.Source, &about) != nil || about.Mode != web.Replay {
		return
	}
	count := func(of string, missed bool) *Coverage {
		c := all[of]
		if c == nil {
			c = &Coverage{Of: of}
			all[of] = c
		}
		if missed {
			c.Misses++
		} else {
			c.Hits++
		}
		return c
	}
	if len(about.Pages) == 0 {
		count(about.By, call.ErrorClass == source.ReplayMiss).Loose += about.Loose
	}
	for i, page := range about.Pages {
		of := page.URL
		if u, err := url.Parse(page.URL); err == nil && u.Host != "" {
			of = u.Host
		}
		if c := count(of, page.Error == source.ReplayMiss); i == 0 {
			c.Loose += about.Loose
		}
	}
}
