package provider

import (
	"context"
	"net/http"

	"trajgen/tools/web/source"
)

// tavily is api.tavily.com.
type tavily struct{ *Client }

var tavilyKind = kind{
	variable: "TAVILY_API_KEY", base: "https://api.tavily.com", auth: "Authorization:Bearer ", most: 20, filters: []filter{site, after},
	open: func(s *Client, _ Config) (Provider, error) { return tavily{s}, nil },
}

func (t tavily) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := t.accept(&q); err != nil {
		return nil, err
	}
	body := map[string]any{"query": q.Text, "max_results": q.Limit, "search_depth": "basic"}
	if q.Site != "" {
		body["include_domains"] = []string{q.Site}
	}
	if q.After != "" {
		body["start_date"] = q.After
	}
	type found struct {
		Title, URL, Content string
		Published           string `json:"published_date"` // of news
	}
	var answer struct{ Results []found }
	if err := t.post(ctx, "/search", body, &answer); err != nil {
		return nil, err
	}
	return results(answer.Results, q.Limit, func(f found) source.Result {
		return source.Result{Title: f.Title, URL: f.URL, Description: f.Content, Published: f.Published}
	}), nil
}

// tavilyPages is what was read, and what was not.
type tavilyPages struct {
	Results []struct {
		URL, Title string
		Content    string `json:"raw_content"`
	}
	Failed []struct{ URL, Error string } `json:"failed_results"`
}

func (t tavily) pages(answer tavilyPages) (pages []source.Page) {
	for _, r := range answer.Results {
		pages = append(pages, t.page(r.URL, r.Title, r.Content))
	}
	for _, f := range answer.Failed {
		pages = append(pages, t.unread(f.URL, 0, f.Error))
	}
	return pages
}

func (t tavily) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	var answer tavilyPages
	body := map[string]any{"urls": urls, "extract_depth": "basic", "format": "markdown"}
	if err := t.post(ctx, "/extract", body, &answer); err != nil {
		return nil, err
	}
	return t.inOrder(urls, t.pages(answer)), nil
}

// Crawl follows instructions with a model of theirs.
func (t tavily) Crawl(ctx context.Context, c source.Crawl) ([]source.Page, error) {
	body := map[string]any{
		"url": c.URL, "limit": max(c.Limit, 1), "max_depth": min(max(c.Depth, 1), 5), "allow_external": false,
		"extract_depth": "basic", "format": "markdown",
	}
	if c.Instructions != "" {
		body["instructions"] = c.Instructions
	}
	if len(c.Include) > 0 {
		body["select_paths"] = expressions(c.Include)
	}
	if len(c.Exclude) > 0 {
		body["exclude_paths"] = expressions(c.Exclude)
	}
	var answer tavilyPages
	if err := t.Ask(ctx, Request{Method: http.MethodPost, Path: "/crawl", JSON: body, Costly: true}, &answer); err != nil {
		return nil, err
	}
	pages := t.pages(answer)
	return pages[:min(len(pages), max(c.Limit, 1))], nil
}
