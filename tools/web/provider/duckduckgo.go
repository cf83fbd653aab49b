package provider

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-shiori/dom"
	"golang.org/x/net/html"

	"trajgen/tools/web/source"
)

// duckduckgo is the page for browsers without JavaScript. It shows robots a puzzle when it likes to.
type duckduckgo struct{ *Client }

var duckduckgoKind = kind{
	base: "https://html.duckduckgo.com", keyless: true, filters: []filter{site},
	open: func(s *Client, _ Config) (Provider, error) { return duckduckgo{s}, nil },
}

func (d duckduckgo) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := d.accept(&q); err != nil {
		return nil, err
	}
	form := url.Values{"q": {operators(q)}, "b": {""}, "kl": {"wt-wt"}}
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html", "Referer": d.base + "/"}
	body, err := d.Send(ctx, Request{Method: http.MethodPost, Path: "/html/", Header: header, Text: form.Encode(), Judge: d.judge})
	if err != nil {
		return nil, err
	}
	document, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil, d.Errorf(source.Outage, source.Malformed, "its page cannot be read: %v", err)
	}
	links := dom.GetElementByID(document, "links")
	if dom.GetElementByID(document, "challenge-form") != nil {
		return nil, d.Errorf(source.Outage, source.Unavailable, "it takes us for a robot")
	}
	if links == nil {
		return nil, d.Errorf(source.Outage, source.Malformed, "its page has no list of results: %s", d.Excerpt(string(body)))
	}
	var found []source.Result
	for _, n := range dom.QuerySelectorAll(links, "#links > .result:not(.result--ad)") { // advertisements are results, too
		if title := dom.QuerySelector(n, "a.result__a"); title != nil {
			r := source.Result{Title: dom.TextContent(title), URL: target(dom.GetAttribute(title, "href"))}
			if snippet := dom.QuerySelector(n, ".result__snippet"); snippet != nil {
				r.Description = dom.TextContent(snippet)
			}
			found = append(found, r)
		}
	}
	if len(found) == 0 && !strings.Contains(plain(dom.TextContent(links)), "No results") { // it was cut off, or looks otherwise now
		return nil, d.Errorf(source.Outage, source.Malformed, "its page has neither results nor says that there are none")
	}
	return results(found, q.Limit, func(r source.Result) source.Result { return r }), nil
}

// judge knows that nothing but ourselves can be refused: no key is sent.
func (d duckduckgo) judge(status int, _ []byte) *source.Error {
	if status != http.StatusForbidden {
		return nil
	}
	return d.Errorf(source.Outage, source.Unavailable, "it refuses us (status 403)")
}

// target is where a link leads: results go through a page that counts them.
func target(href string) string {
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if to := u.Query().Get("uddg"); to != "" && strings.HasPrefix(u.Path, "/l/") {
		return to
	}
	if u.Host == "" {
		return ""
	}
	if u.Scheme == "" {
		u.Scheme = "https"
	}
	return u.String()
}
