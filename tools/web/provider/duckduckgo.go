package provider

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"trajgen/tools/web/source"
)

// duckduckgo is the page for browsers without JavaScript. It shows robots a puzzle when it likes to.
type duckduckgo struct{ *service }

var duckduckgoKind = kind{
	base: "https://html.duckduckgo.com", keyless: true, filters: []filter{site},
	open: func(s *service, _ Config) (Provider, error) { return duckduckgo{s}, nil },
}

func (d duckduckgo) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := d.accept(&q); err != nil {
		return nil, err
	}
	form := url.Values{"q": {operators(q)}, "b": {""}, "kl": {"wt-wt"}}
	header := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html", "Referer": d.base + "/"}
	body, err := d.send(ctx, request{method: http.MethodPost, path: "/html/", header: header, text: form.Encode(), judge: d.judge})
	if err != nil {
		return nil, err
	}
	document, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil, d.fault(source.Outage, source.Malformed, "its page cannot be read: %v", err)
	}
	links := first(document, func(n *html.Node) bool { return attribute(n, "id") == "links" })
	if first(document, func(n *html.Node) bool { return attribute(n, "id") == "challenge-form" }) != nil {
		return nil, d.fault(source.Outage, source.Unavailable, "it takes us for a robot")
	}
	if links == nil {
		return nil, d.fault(source.Outage, source.Malformed, "its page has no list of results: %s", d.excerpt(body))
	}
	var found []source.Result
	for n := range links.ChildNodes() {
		// Advertisements are results, too, of the class result--ad.
		title := first(n, func(n *html.Node) bool { return n.Data == "a" && class(n, "result__a") })
		if !class(n, "result") || class(n, "result--ad") || title == nil {
			continue
		}
		snippet := first(n, func(n *html.Node) bool { return class(n, "result__snippet") })
		found = append(found, source.Result{Title: words(title), URL: target(attribute(title, "href")), Description: words(snippet)})
	}
	if len(found) == 0 && !strings.Contains(plain(words(links)), "No results") { // it was cut off, or looks otherwise now
		return nil, d.fault(source.Outage, source.Malformed, "its page has neither results nor says that there are none")
	}
	return results(found, q.Limit, func(r source.Result) source.Result { return r }), nil
}

// judge knows that nothing but ourselves can be refused: no key is sent.
func (d duckduckgo) judge(status int, _ []byte) *source.Error {
	if status != http.StatusForbidden {
		return nil
	}
	return d.fault(source.Outage, source.Unavailable, "it refuses us (status 403)")
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

// first is the first node at or below n, in the document's order, for which is holds.
func first(n *html.Node, is func(*html.Node) bool) *html.Node {
	if is(n) {
		return n
	}
	for below := range n.Descendants() {
		if is(below) {
			return below
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func class(n *html.Node, name string) bool {
	return slices.Contains(strings.Fields(attribute(n, "class")), name)
}

// words is the text below a node.
func words(n *html.Node) string {
	var b strings.Builder
	if n != nil {
		for below := range n.Descendants() {
			if below.Type == html.TextNode {
				b.WriteString(below.Data)
			}
		}
	}
	return b.String()
}
