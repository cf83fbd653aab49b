package extract

import (
	"context"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"trajgen/tools/web/source"
)

// shortText is the number of characters below which what was taken for the main content is not believed to be all of it.
const shortText = 200

// html fills a page from its HTML.
func (x *Extractor) html(ctx context.Context, page *source.Page, text string) {
	facts := scan(text, baseOf(page), x.bytes())
	page.Title, page.Links = facts.title, facts.links
	for _, frame := range facts.frames {
		if len(page.Links) < maxLinks {
			page.Links = append(page.Links, frame)
		}
	}
	if ctx.Err() != nil {
		return
	}
	if facts.elements <= maxElements {
		page.Text, page.Extractor = x.body(ctx, text, facts.base)
	}
	if page.Text == "" {
		page.Text, page.Extractor = facts.text, "text"
	}
	if page.Text == "" && len(facts.frames) > 0 {
		page.Text, page.Extractor = "The page consists of other pages:\n"+list(facts.frames), "text"
	}
}

// body returns the main content of HTML as Markdown and how it was found, or nothing when there is none or the libraries fail.
func (x *Extractor) body(ctx context.Context, text string, base *url.URL) (markdown, how string) {
	var doc *html.Node
	err := guarded(func() (err error) {
		doc, err = html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
		return err
	})
	if err != nil || ctx.Err() != nil {
		return "", ""
	}
	t := tidier{base: base}
	t.tidy(doc, around{})
	if ctx.Err() == nil && t.elements <= maxReadable {
		if main := mainContent(doc, base); main != nil && utf8.RuneCountInString(textOf(main)) >= shortText {
			markdown = x.render(main)
		}
	}
	if markdown != "" || ctx.Err() != nil {
		return markdown, "readability"
	}
	whole := find(doc, atom.Body)
	if whole == nil {
		return "", ""
	}
	remove(whole, isAround)
	return x.render(whole), "body"
}
