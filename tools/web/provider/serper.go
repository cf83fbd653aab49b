package provider

import (
	"cmp"
	"context"

	"trajgen/tools/web/source"
)

const serperBase = "https://google.serper.dev"

// serper is google.serper.dev.
type serper struct{ *Client }

var serperKind = kind{
	variable: "SERPER_API_KEY", base: serperBase, auth: "X-API-KEY:", most: 100, filters: []filter{language, site, after},
	open: func(s *Client, _ Config) (Provider, error) { return serper{s}, nil },
}

func (s serper) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := s.accept(&q); err != nil {
		return nil, err
	}
	text := operators(q)
	if q.After != "" {
		text += " after:" + q.After
	}
	body := map[string]any{"q": text, "num": q.Limit}
	if q.Language != "" {
		body["hl"] = q.Language
	}
	type found struct{ Title, Link, Snippet, Date string }
	var answer struct{ Organic []found }
	if err := s.post(ctx, "/search", body, &answer); err != nil {
		return nil, err
	}
	return results(answer.Organic, q.Limit, func(f found) source.Result {
		return source.Result{Title: f.Title, URL: f.Link, Description: f.Snippet, Published: f.Date}
	}), nil
}

// Read asks another host, or a path below a base URL of one's own.
func (s serper) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	path := "https://scrape.serper.dev/"
	if s.base != serperBase {
		path = "/scrape"
	}
	return s.each(ctx, urls, func(ctx context.Context, address string) (source.Page, error) {
		var answer struct {
			Text, Markdown string
			Metadata       struct{ Title string }
		}
		if err := s.post(ctx, path, map[string]any{"url": address, "includeMarkdown": true}, &answer); err != nil {
			return source.Page{}, err
		}
		return s.page(address, answer.Metadata.Title, cmp.Or(answer.Markdown, answer.Text)), nil
	})
}
