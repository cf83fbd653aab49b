package provider

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"trajgen/tools/web/source"
)

// brave is api.search.brave.com.
type brave struct{ *Client }

var braveKind = kind{
	variable: "BRAVE_SEARCH_API_KEY", base: "https://api.search.brave.com", auth: "X-Subscription-Token:", most: 20,
	filters: []filter{language, site, after},
	open:    func(s *Client, _ Config) (Provider, error) { return brave{s}, nil },
}

func (b brave) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := b.accept(&q); err != nil {
		return nil, err
	}
	query := url.Values{"q": {operators(q)}, "count": {strconv.Itoa(q.Limit)}}
	if q.Language != "" {
		query.Set("search_lang", q.Language)
	}
	if q.After != "" {
		query.Set("freshness", q.After+"to"+farAway)
	}
	type found struct {
		Title, URL, Description, Age string
		PageAge                      string `json:"page_age"`
	}
	var answer struct{ Web struct{ Results []found } }
	if err := b.Ask(ctx, Request{Method: http.MethodGet, Path: "/res/v1/web/search", Query: query}, &answer); err != nil {
		return nil, err
	}
	return results(answer.Web.Results, q.Limit, func(f found) source.Result {
		return source.Result{Title: f.Title, URL: f.URL, Description: f.Description, Published: cmp.Or(f.PageAge, f.Age)}
	}), nil
}
