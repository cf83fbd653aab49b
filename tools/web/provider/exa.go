package provider

import (
	"context"

	"trajgen/tools/web/source"
)

// exa is api.exa.ai.
type exa struct{ *Client }

var exaKind = kind{
	variable: "EXA_API_KEY", base: "https://api.exa.ai", auth: "x-api-key:", most: 100, filters: []filter{site, after},
	open: func(s *Client, _ Config) (Provider, error) { return exa{s}, nil },
}

type exaResult struct {
	ID, URL, Title, Text string
	Published            string `json:"publishedDate"`
}

func (e exa) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := e.accept(&q); err != nil {
		return nil, err
	}
	text := map[string]any{"maxCharacters": maxDescription}
	body := map[string]any{"query": q.Text, "numResults": q.Limit, "type": "auto", "contents": map[string]any{"text": text}}
	if q.Site != "" {
		body["includeDomains"] = []string{q.Site}
	}
	if q.After != "" {
		body["startPublishedDate"] = q.After + "T00:00:00.000Z"
	}
	var answer struct{ Results []exaResult }
	if err := e.post(ctx, "/search", body, &answer); err != nil {
		return nil, err
	}
	return results(answer.Results, q.Limit, func(r exaResult) source.Result {
		return source.Result{Title: r.Title, URL: r.URL, Description: r.Text, Published: r.Published}
	}), nil
}

func (e exa) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	var answer struct {
		Results  []exaResult
		Statuses []struct {
			ID, Status string
			Error      struct {
				Tag    string
				Status int `json:"httpStatusCode"` // of the site
			}
		}
	}
	if err := e.post(ctx, "/contents", map[string]any{"urls": urls, "text": true}, &answer); err != nil {
		return nil, err
	}
	var pages []source.Page
	for _, r := range answer.Results {
		pages = append(pages, e.page(r.URL, r.Title, r.Text))
	}
	for _, s := range answer.Statuses {
		if s.Status == "error" {
			pages = append(pages, e.unread(s.ID, s.Error.Status, s.Error.Tag))
		}
	}
	return e.inOrder(urls, pages), nil
}
