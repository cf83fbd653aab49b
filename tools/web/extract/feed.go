package extract

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

const (
	maxEntries = 200       // of a feed
	maxSummary = 1000      // characters of what an entry says
	maxField   = 256 << 10 // bytes of a field
)

// entry is what a feed says of one page, or of itself. Title, summary and content are HTML.
type entry struct {
	title, link, published, updated, summary, content string
}

// feed fills a page from RSS or Atom, and reports whether it is that.
func (x *Extractor) feed(ctx context.Context, page *source.Page, text string) bool {
	entries, more, ok := readFeed(text)
	if !ok {
		return false
	}
	base, head := baseOf(page), entries[0]
	page.Title, page.Extractor = oneLine(head.title), "feed"
	var out strings.Builder
	if len(entries) == 1 {
		out.WriteString("The feed has no entries.")
	}
	seen := map[string]bool{}
	for _, e := range entries[1:] {
		if ctx.Err() != nil {
			return true
		}
		heading, title := "", oneLine(e.title)
		if link, ok := resolve(base, e.link); ok {
			heading = markdownLink(source.Link{URL: link, Text: title})
			if !seen[link] && strings.HasPrefix(link, "http") {
				seen[link] = true
				page.Links = append(page.Links, source.Link{URL: link, Text: title})
			}
		} else {
			heading = title
		}
		summary := e.summary
		if summary == "" {
			summary = e.content
		}
		fmt.Fprintf(&out, "## %s\n\n", heading)
		for _, part := range []string{e.date(), chars.First(x.fragment(summary, base), maxSummary, " …")} {
			if part != "" {
				out.WriteString(part + "\n\n")
			}
		}
	}
	if more > 0 {
		fmt.Fprintf(&out, "[%d more entries]", more)
	}
	page.Text = out.String()
	return true
}

func (e entry) date() string {
	if e.published != "" {
		return e.published
	}
	return e.updated
}

// children parses HTML that is a part of a page.
func children(text string) *html.Node {
	top := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	if err := guarded(func() error {
		nodes, err := html.ParseFragment(strings.NewReader(text), &html.Node{Type: html.ElementNode, Data: "body",
			DataAtom: atom.Body})
		for _, n := range nodes {
			top.AppendChild(n)
		}
		return err
	}); err != nil {
		top.AppendChild(&html.Node{Type: html.TextNode, Data: scan(text, &url.URL{}, maxField).text})
	}
	return top
}

// oneLine returns HTML as a line of text.
func oneLine(text string) string {
	return chars.First(strings.Join(strings.Fields(textOf(children(text))), " "), maxTitle, "…")
}

// fragment returns HTML that is a part of a page as Markdown.
func (x *Extractor) fragment(text string, base *url.URL) string {
	top := children(text)
	t := tidier{base: base}
	t.tidy(top, around{})
	return x.render(top)
}

// The namespaces of feeds. A prefix that a feed does not declare stands for itself.
var namespaces = map[string]string{
	"": "", "http://www.w3.org/2005/Atom": "", "http://purl.org/atom/ns#": "", "http://purl.org/rss/1.0/": "",
	"http://purl.org/dc/elements/1.1/": "dc:", "dc": "dc:",
	"http://purl.org/rss/1.0/modules/content/": "content:", "content": "content:",
}

// readFeed reads a feed as far as it can be read: first what it says of itself, then its entries, and how many more there are.
func readFeed(text string) (entries []entry, more int, ok bool) {
	in := xml.NewDecoder(strings.NewReader(text))
	in.Strict, in.Entity = false, xml.HTMLEntity
	in.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is in UTF-8 by now
	entries = []entry{{}}
	spare := &entry{}
	current := &entries[0]
	for {
		token, err := in.Token()
		if err != nil {
			return entries, more, ok
		}
		if end, isEnd := token.(xml.EndElement); isEnd && (end.Name.Local == "item" || end.Name.Local == "entry") {
			current = &entries[0]
		}
		start, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		space, known := namespaces[start.Name.Space]
		switch name := space + start.Name.Local; {
		case !ok && name != "rss" && name != "feed" && start.Name.Local != "RDF":
			return nil, 0, false
		case start.Name.Local == "RDF", known && (name == "rss" || name == "feed" || name == "channel"):
			ok = true
		case known && (name == "item" || name == "entry") && len(entries) > maxEntries:
			current = spare
			more++
		case known && (name == "item" || name == "entry"):
			entries = append(entries, entry{})
			current = &entries[len(entries)-1]
		case !known || !current.take(name, start, in, text):
			if in.Skip() != nil {
				return entries, more, ok
			}
		}
	}
}

// take reads the element that start begins, if it is a field of an entry. What is there already stays.
func (e *entry) take(name string, start xml.StartElement, in *xml.Decoder, text string) bool {
	attrs := map[string]string{}
	for _, a := range start.Attr {
		attrs[a.Name.Local] = a.Value
	}
	var field *string
	switch name {
	case "title":
		field = &e.title
	case "link":
		if rel := attrs["rel"]; rel != "" && rel != "alternate" {
			return false
		}
		field = &e.link
	case "guid":
		if attrs["isPermaLink"] == "false" {
			return false
		}
		field = &e.link
	case "published", "pubDate", "dc:date", "issued":
		field = &e.published
	case "updated", "modified", "lastBuildDate":
		field = &e.updated
	case "summary", "description":
		field = &e.summary
	case "content", "content:encoded":
		field = &e.content
	default:
		return false
	}
	value := contents(in, text)
	if href := attrs["href"]; name == "link" && href != "" {
		value = href
	}
	if kind := attrs["type"]; strings.Contains(start.Name.Space, "Atom") && (kind == "" || kind == "text") && name != "link" {
		value = html.EscapeString(value)
	}
	if value = strings.TrimSpace(value); *field == "" && (name != "guid" || strings.HasPrefix(value, "http")) {
		*field = value
	}
	return true
}

// contents reads to the end of the element that has just begun, and returns what is in it: its text, or all of it where it has
// elements.
func contents(in *xml.Decoder, all string) string {
	begin := in.InputOffset()
	var text strings.Builder
	markup := false
	for depth := 1; ; {
		before := in.InputOffset()
		token, err := in.Token()
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			markup = true
		case xml.EndElement:
			depth--
		case xml.CharData:
			if text.Len() < maxField {
				text.Write(token)
			}
		}
		if depth > 0 && err == nil {
			continue
		}
		inner := text.String()
		if markup {
			inner = all[begin:before]
		}
		return strings.ToValidUTF8(inner[:min(len(inner), maxField)], "")
	}
}
