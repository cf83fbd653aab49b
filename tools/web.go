package tools

import (
	"cmp"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/threats"
	"trajgen/tools/web"
	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

const (
	webTimeout   = 2 * time.Minute
	crawlTimeout = 6 * time.Minute // a crawl ends by itself after five
	pageLimit    = 5000            // characters of a page that one call shows
)

// webView is the episode's web.
func webView(env *registry.Env) (*web.View, error) {
	if view, ok := registry.Service[*web.View](env.Session); ok {
		return view, nil
	}
	return nil, registry.Failf("no_web", "this episode has no web")
}

// webFailure is what an error of a source is for the model, and for the episode: what the operator has to mend, and a recording that
// lacks too much, are not the agent's doing.
func webFailure(view *web.View, err error) error {
	e, ok := errors.AsType[*source.Error](err)
	if !ok {
		return err
	}
	f := &registry.Failure{Class: e.Class, Message: e.Message, Extra: map[string]any{"success": false}}
	switch e.Blame {
	case source.Outage:
		f.Status = episode.CallUnavailable
		f.Broken = e.Class == source.ReplayMiss && view.Lacking()
	case source.Operator:
		f.Status, f.Broken = episode.CallUnavailable, true
	}
	return f
}

// suspect adds what looks like an attack in texts of strangers to a list.
func suspect(known []string, texts ...string) []string {
	for _, text := range texts {
		for _, finding := range threats.Scan(text) {
			if !slices.Contains(known, finding.ID) {
				known = append(known, finding.ID)
			}
		}
	}
	return known
}

type webPage struct {
	URL        string `json:"url"`
	Title      string `json:"title"`
	Content    string `json:"content"`
	NextOffset int    `json:"next_offset,omitempty"`
	Length     int    `json:"length,omitempty"` // of the whole page in characters, where this is a part
	Error      string `json:"error,omitempty"`
	Blocked    bool   `json:"blocked_by_policy,omitempty"`
}

type webPages struct {
	Success bool      `json:"success"`
	Results []webPage `json:"results"`
}

// showPages is the result of a call that read pages. If none could be read, the call failed as its gravest page did.
func showPages(view *web.View, about *web.About, pages []source.Page, offset int) (any, error) {
	result := webPages{Results: []webPage{}}
	var gravest *source.Error
	for _, page := range pages {
		shown := webPage{URL: cmp.Or(page.FinalURL, page.URL), Title: page.Title}
		if e := page.Error; e != nil {
			shown.Error, shown.Blocked = e.Message, e.Class == source.Policy
			if gravest == nil || e.Blame > gravest.Blame {
				gravest = e
			}
		} else {
			result.Success = true
			shown.Content, shown.NextOffset = extract.Cut(page.Text, offset, pageLimit)
			about.Threats = suspect(about.Threats, page.Title, shown.Content)
			if offset > 0 || shown.NextOffset > 0 {
				shown.Length = utf8.RuneCountInString(page.Text)
			}
		}
		result.Results = append(result.Results, shown)
	}
	if gravest == nil || result.Success && !(gravest.Class == source.ReplayMiss && view.Lacking()) {
		return result, nil
	}
	err := webFailure(view, gravest)
	if f, ok := errors.AsType[*registry.Failure](err); ok && len(pages) > 1 {
		f.Extra["results"] = result.Results
	}
	return nil, err
}
