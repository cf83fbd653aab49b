package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"trajgen/tools/web/source"
)

// searchr1 is a retrieval server as the trainers of search agents know it. Its documents may have no address but their id.
type searchr1 struct{ *Client }

var searchr1Kind = kind{
	variable: "SEARCHR1_URL", keyless: true,
	open: func(s *Client, _ Config) (Provider, error) { return searchr1{s}, nil },
}

type searchr1Document struct {
	ID       json.RawMessage // a number or a string
	URL      string
	Title    string
	Contents string // title, line break, text
}

// searchr1Item is a document that stands alone, or beside its score.
type searchr1Item struct {
	searchr1Document
	Document *searchr1Document
}

func (s searchr1) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := s.accept(&q); err != nil {
		return nil, err
	}
	body := map[string]any{"queries": []string{q.Text}, "topk": q.Limit, "return_scores": true}
	var answer struct{ Result [][]searchr1Item }
	if err := s.Ask(ctx, Request{Method: http.MethodPost, Path: "/retrieve", JSON: body}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Result) != 1 {
		return nil, s.Errorf(source.Outage, source.Malformed, "it answers one query with %d lists", len(answer.Result))
	}
	return results(answer.Result[0], q.Limit, func(item searchr1Item) source.Result {
		d := item.searchr1Document
		if item.Document != nil {
			d = *item.Document
		}
		title, text, found := strings.Cut(d.Contents, "\n")
		if !found {
			title, text = d.Title, d.Contents
		}
		address := d.URL
		if address == "" {
			address = strings.Trim(string(d.ID), `"`)
		}
		return source.Result{Title: strings.Trim(title, `"`), URL: address, Description: text}
	}), nil
}
