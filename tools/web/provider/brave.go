package provider

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"trajgen/tools/web/source"
)

// brave is api.search.brave.com.
type brave struct{ *service }

var braveKind = kind{
	variable: "BRAVE_SEARCH_API_KEY", base: "https://api.search.brave.com", auth: "X-Subscription-Token:", most: 20, filters: []filter{language, site},
	open: func(s *service, _ Config) (Provider, error) { return brave{s}, nil },
}

func (b brave) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := b.accept(&q); err != nil {
		return nil, err
	}
	query := url.Values{"q": {operators(q)}, "count": {strconv.Itoa(q.Limit)}}
	if q.Language != "" {
		query.Set("search_lang", q.Language)
	}
	type found struct {
		Title, URL, Description, Age string
		PageAge                      string `json:"page_age"`
	}
	var answer struct{ Web struct{ Results []found } }
	if err := b.ask(ctx, request{method: http.MethodGet, path: "/res/v1/web/search", query: query}, &answer); err != nil {
		return nil, err
	}
	return results(answer.Web.Results, q.Limit, func(f found) source.Result {
		published := f.PageAge
		if published == "" {
			published = f.Age
		}
		return source.Result{Title: f.Title, URL: f.URL, Description: f.Description, Published: published}
	}), nil
}
