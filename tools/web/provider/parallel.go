package provider

import (
	"context"
	"strings"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// parallel is api.parallel.ai.
type parallel struct{ *Client }

var parallelKind = kind{
	variable: "PARALLEL_API_KEY", base: "https://api.parallel.ai", auth: "x-api-key:", most: 40, filters: []filter{site, after},
	open: func(s *Client, _ Config) (Provider, error) { return parallel{s}, nil },
}

type parallelResult struct {
	URL, Title string
	Published  string `json:"publish_date"`
	Excerpts   []string
	Content    string `json:"full_content"`
}

func (p parallel) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := p.accept(&q); err != nil {
		return nil, err
	}
	const longest = 200 // characters of a query; an objective may have more
	settings := map[string]any{"max_results": q.Limit}
	policy := map[string]any{}
	if q.Site != "" {
		policy["include_domains"] = []string{q.Site}
	}
	if q.After != "" {
		policy["after_date"] = q.After
	}
	if len(policy) > 0 {
		settings["source_policy"] = policy
	}
	// Without a mode the dearest one is used.
	short := chars.First(q.Text, longest, "")
	body := map[string]any{"search_queries": []string{short}, "mode": "basic", "advanced_settings": settings}
	if short != q.Text {
		body["objective"] = q.Text
	}
	var answer struct{ Results []parallelResult }
	if err := p.post(ctx, "/v1/search", body, &answer); err != nil {
		return nil, err
	}
	return results(answer.Results, q.Limit, func(r parallelResult) source.Result {
		return source.Result{Title: r.Title, URL: r.URL, Description: strings.Join(r.Excerpts, " … "), Published: r.Published}
	}), nil
}

func (p parallel) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	var answer struct {
		Results []parallelResult
		Errors  []struct {
			URL, Content string
			Type         string `json:"error_type"`
			Status       int    `json:"http_status_code"` // of the site
		}
	}
	body := map[string]any{"urls": urls, "advanced_settings": map[string]any{"full_content": true}}
	if err := p.post(ctx, "/v1/extract", body, &answer); err != nil {
		return nil, err
	}
	var pages []source.Page
	for _, r := range answer.Results {
		text := r.Content
		if text == "" {
			text = strings.Join(r.Excerpts, "\n\n")
		}
		pages = append(pages, p.page(r.URL, r.Title, text))
	}
	for _, e := range answer.Errors {
		pages = append(pages, p.unread(e.URL, e.Status, e.Type+" "+e.Content))
	}
	return p.inOrder(urls, pages), nil
}
