package provider

import (
	"context"
	"net/http"
	"net/url"

	"trajgen/tools/web/source"
)

// searxng is a SearXNG instance, which asks other engines. How many results come is theirs to say.
type searxng struct{ *Client }

var searxngKind = kind{
	variable: "SEARXNG_URL", keyless: true, filters: []filter{language, site},
	open: func(s *Client, _ Config) (Provider, error) { return searxng{s}, nil },
}

func (s searxng) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := s.accept(&q); err != nil {
		return nil, err
	}
	query := url.Values{"q": {operators(q)}, "format": {"json"}}
	if q.Language != "" {
		query.Set("language", q.Language)
	}
	type found struct {
		URL, Title, Content string
		Published           string `json:"publishedDate"`
	}
	var answer struct {
		Results      []found
		Unresponsive []any `json:"unresponsive_engines"`
	}
	if err := s.Ask(ctx, Request{Method: http.MethodGet, Path: "/search", Query: query, Judge: s.judge}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) == 0 && len(answer.Unresponsive) > 0 {
		return nil, s.Errorf(source.Outage, source.Unavailable, "its engines do not answer: %v", answer.Unresponsive)
	}
	return results(answer.Results, q.Limit, func(f found) source.Result {
		return source.Result{Title: f.Title, URL: f.URL, Description: f.Content, Published: f.Published}
	}), nil
}

// judge knows that instances refuse JSON where it is not switched on.
func (s searxng) judge(status int, _ []byte) *source.Error {
	if status != http.StatusForbidden {
		return nil
	}
	const why = "it refuses to answer in JSON (status 403): add json to search.formats in its settings.yml"
	return s.Errorf(source.Operator, source.Refused, why)
}
