package provider

import (
	"context"
	"net/http"

	"trajgen/tools/web/source"
)

// serper is google.serper.dev.
type serper struct{ *service }

var serperKind = kind{
	variable: "SERPER_API_KEY", base: "https://google.serper.dev", most: 100, filters: []filter{language, site},
	open: func(s *service, _ Config) (Provider, error) { return serper{s}, nil },
}

func (s serper) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := s.accept(&q); err != nil {
		return nil, err
	}
	body := map[string]any{"q": operators(q), "num": q.Limit}
	if q.Language != "" {
		body["hl"] = q.Language
	}
	type found struct{ Title, Link, Snippet, Date string }
	var answer struct{ Organic []found }
	header := map[string]string{"X-API-KEY": s.key}
	if err := s.ask(ctx, request{method: http.MethodPost, path: "/search", header: header, json: body}, &answer); err != nil {
		return nil, err
	}
	return results(answer.Organic, q.Limit, func(f found) source.Result {
		return source.Result{Title: f.Title, URL: f.Link, Description: f.Snippet, Published: f.Date}
	}), nil
}
