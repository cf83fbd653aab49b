package extract

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"trajgen/tools/internal/chars"
)

// Bounds of a tree, beyond which the libraries would take much longer than the page is large.
const (
	maxDepth   = 150    // elements within one another; what is deeper keeps its text
	maxNesting = 8      // lists and quotations within one another, as each is indented
	maxSpan    = 100    // cells that a cell covers
	maxSpans   = 2_000  // cells that cells cover in all
	maxColumns = 60     // of a table; one with more is written without its form
	maxClass   = 300    // bytes of an attribute that says what an element is for
	maxTargets = 10_000 // links and pictures; those beyond keep their text
)

var exponent = regexp.MustCompile(`^[-+−–]?\d{1,4}$`)

// tidier makes a tree harmless, and takes out what is never text.
type tidier struct {
	base     *url.URL
	elements int
	spans    int
	targets  int
}

// target returns where a link or picture leads, if it is to be kept.
func (t *tidier) target(ref string) (string, bool) {
	if t.targets++; t.targets > maxTargets {
		return "", false
	}
	return resolve(t.base, ref)
}

// around says what is around an element.
type around struct {
	depth, nesting int // elements in all, and those that are indented
	heading        bool
}

// tidy goes through what is below n.
func (t *tidier) tidy(n *html.Node, in around) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && useless(c):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && in.depth >= maxDepth:
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: textOf(c) + " "}, c)
			n.RemoveChild(c)
		case c.Type == html.ElementNode:
			t.elements++
			t.element(c)
			inner := in
			inner.depth++
			switch c.DataAtom {
			case atom.Ul, atom.Ol, atom.Blockquote:
				if inner.nesting++; inner.nesting > maxNesting {
					rename(c, atom.Div)
				}
			case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
				if in.heading { // each of which would go through all that is in it
					rename(c, atom.Div)
				}
				inner.heading = true
			}
			t.tidy(c, inner)
		}
		c = next
	}
}

// useless reports whether an element is nothing to read.
func useless(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Link, atom.Meta, atom.Base, atom.Noscript, atom.Iframe, atom.Frame,
		atom.Object, atom.Embed, atom.Svg, atom.Canvas, atom.Audio, atom.Video, atom.Map, atom.Input, atom.Select, atom.Textarea, atom.Dialog:
		return true
	case atom.Html, atom.Body: // which are hidden at first on pages whose script shows them
		return false
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "class":
			if a.Val == "mw-editsection" { // beside each heading of a wiki
				return true
			}
		case "style":
			style := strings.ReplaceAll(a.Val[:min(len(a.Val), maxClass)], " ", "")
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// element leaves an element those attributes that matter, within bounds.
func (t *tidier) element(n *html.Node) {
	old := n.Attr
	n.Attr = nil
	keep := func(key, value string) { n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value}) }
	image, pixel := "", false // which counts readers
	for _, a := range old {
		switch a.Key {
		case "class", "id", "role", "itemprop", "rel", "dir", "lang", "align", "start":
			keep(a.Key, a.Val[:min(len(a.Val), maxClass)])
		case "alt":
			keep(a.Key, chars.First(a.Val, maxTitle, "…"))
		case "alttext": // of a formula
			if n.Data == "math" {
				rename(n, atom.Code)
				empty(n)
				n.AppendChild(&html.Node{Type: html.TextNode, Data: a.Val})
			}
		case "href":
			if n.DataAtom != atom.A {
				break
			}
			if u, ok := t.target(a.Val); ok {
				keep(a.Key, u)
			}
		case "src", "data-src", "data-original", "data-lazy-src": // the latter where a script loads pictures late
			if u, ok := t.target(a.Val); ok && n.DataAtom == atom.Img && (image == "" || a.Key != "src") {
				image = u
			}
		case "width", "height":
			pixel = pixel || a.Val == "1" || a.Val == "0"
		case "colspan", "rowspan":
			if span, err := strconv.Atoi(a.Val); err == nil && span > 1 && span <= maxSpan {
				keep(a.Key, a.Val)
			}
		}
	}
	switch n.DataAtom {
	case atom.A:
		if attribute(n, "href") == "" {
			rename(n, atom.Span)
		}
	case atom.Img:
		if strings.HasPrefix(image, "http") && !pixel {
			keep("src", image)
		} else { // it is within the page as base64: its name is all that is left
			alt := attribute(n, "alt")
			rename(n, atom.Span)
			n.Attr = nil
			n.AppendChild(&html.Node{Type: html.TextNode, Data: alt})
		}
	case atom.Td, atom.Th:
		t.span(n)
	case atom.Sup: // of which Markdown has none: ten to the sixth is not 106
		if digits := n.FirstChild; digits != nil && digits.Type == html.TextNode && exponent.MatchString(digits.Data) {
			digits.Data = "^" + digits.Data
		}
	}
}

// span takes the spans of a cell away when cells cover too many in all.
func (t *tidier) span(n *html.Node) {
	columns, _ := strconv.Atoi(attribute(n, "colspan"))
	rows, _ := strconv.Atoi(attribute(n, "rowspan"))
	if columns == 0 && rows == 0 {
		return
	}
	if t.spans += max(columns, 1) * max(rows, 1); t.spans > maxSpans {
		n.Attr = nil
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func rename(n *html.Node, to atom.Atom) { n.DataAtom, n.Data = to, to.String() }

func empty(n *html.Node) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
}

// textOf returns the text below a node.
func textOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
			text.WriteByte(' ')
		}
	}
	return text.String()
}

// find returns the first element of this kind.
func find(n *html.Node, kind atom.Atom) *html.Node {
	for d := range n.Descendants() {
		if d.DataAtom == kind && d.Type == html.ElementNode {
			return d
		}
	}
	return nil
}

// remove takes the elements out that unwanted says.
func remove(n *html.Node, unwanted func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if unwanted(c) {
			n.RemoveChild(c)
		} else {
			remove(c, unwanted)
		}
		c = next
	}
}

// isAround reports whether an element is around the text of a page rather than part of it.
func isAround(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Footer, atom.Aside:
		return n.Type == html.ElementNode
	}
	switch attribute(n, "role") {
	case "navigation", "contentinfo", "complementary":
		return true
	}
	return false
}
