package tools

import (
	"cmp"
	"context"
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
	Summarized bool   `json:"summarized,omitempty"`
	Notice     string `json:"notice,omitempty"`
	Error      string `json:"error,omitempty"`
	Blocked    bool   `json:"blocked_by_policy,omitempty"`
}

type webPages struct {
	Success bool      `json:"success"`
	Results []webPage `json:"results"`
}

// showing says how pages are shown.
type showing struct {
	offset int
	raw    bool   // their own text, also where the run summarises long pages
	wanted string // what the agent looks for
}

// showPages is the result of a call that read pages. If none could be read, the call failed as its gravest page did.
func showPages(ctx context.Context, env *registry.Env, about *web.About, pages []source.Page, how showing) (any, error) {
	view, err := webView(env)
	if err != nil {
		return nil, err
	}
	var short map[int]summary
	if s, ok := registry.Service[*Summarizer](env.Session); ok && !how.raw && how.offset == 0 {
		if short, err = s.summarize(ctx, about, pages, how.wanted); err != nil {
			return nil, err
		}
	}
	result := webPages{Results: []webPage{}}
	var gravest *source.Error
	for i, page := range pages {
		shown := webPage{URL: cmp.Or(page.FinalURL, page.URL), Title: page.Title}
		if e := page.Error; e != nil {
			shown.Error, shown.Blocked = e.Message, e.Class == source.Policy
			if gravest == nil || e.Blame > gravest.Blame {
				gravest = e
			}
		} else {
			result.Success = true
			shown.show(page.Text, how.offset, short[i])
			about.Threats = suspect(about.Threats, page.Title, shown.Content)
		}
		result.Results = append(result.Results, shown)
	}
	if gravest == nil || result.Success && !(gravest.Class == source.ReplayMiss && view.Lacking()) {
		return result, nil
	}
	err = webFailure(view, gravest)
	if f, ok := errors.AsType[*registry.Failure](err); ok && len(pages) > 1 {
		f.Extra["results"] = result.Results
	}
	return nil, err
}

// show fills in the text of a page from an offset on, or its summary.
func (p *webPage) show(text string, offset int, short summary) {
	if p.Notice = short.notice; short.text != "" {
		p.Content, p.Summarized = short.text, true
	} else {
		p.Content, p.NextOffset = extract.Cut(text, offset, pageLimit)
	}
	if offset > 0 || p.NextOffset > 0 || p.Summarized {
		p.Length = utf8.RuneCountInString(text)
	}
}
