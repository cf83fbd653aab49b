package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// limit takes the end out of a tree, so that its Markdown has not many more than left bytes, and returns how many are left.
func limit(n *html.Node, left, nesting int) int {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if left <= 0 {
			n.RemoveChild(c)
			c = next
			continue
		}
		indent := 4 * nesting
		left -= 2 + indent
		switch {
		case c.Type == html.TextNode:
			c.Data = strings.ToValidUTF8(c.Data[:min(len(c.Data), max(left, 0))], "")
			left -= len(c.Data) + strings.Count(c.Data, "\n")*indent
		case c.DataAtom == atom.A, c.DataAtom == atom.Img:
			left -= len(attribute(c, "href")) + len(attribute(c, "src")) + len(attribute(c, "alt"))
		case c.DataAtom == atom.Table && columns(c) > maxColumns:
			unformed(c)
		case c.DataAtom == atom.Table && find(c, atom.Th) != nil:
			oneLiners(c)
		case c.DataAtom == atom.Td, c.DataAtom == atom.Th: // which stand side by side where Markdown has no such table
			c.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, c.FirstChild)
		}
		inner := nesting
		if c.DataAtom == atom.Ul || c.DataAtom == atom.Ol || c.DataAtom == atom.Blockquote {
			inner++
		}
		left = limit(c, left, inner)
		c = next
	}
	return left
}

// columns returns how many columns the widest row of a table has.
func columns(table *html.Node) int {
	most := 0
	for row := range table.Descendants() {
		if row.DataAtom != atom.Tr {
			continue
		}
		n := 0
		for cell := range row.ChildNodes() {
			if cell.Type == html.ElementNode {
				span, _ := strconv.Atoi(attribute(cell, "colspan"))
				n += max(span, 1)
			}
		}
		most = max(most, n)
	}
	return most
}

// oneLiners makes lines of the lists in a table, as a table of Markdown has no room for a list. One that has no heading is
// for the layout of a page rather than for data, and keeps its lists.
func oneLiners(table *html.Node) {
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Ul, atom.Ol:
			rename(n, atom.Span)
		case atom.Li:
			rename(n, atom.Span)
			n.AppendChild(&html.Node{Type: html.ElementNode, Data: "br", DataAtom: atom.Br})
		}
	}
}

// unformed makes paragraphs of the rows of a table.
func unformed(table *html.Node) {
	rename(table, atom.Div)
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Caption:
			rename(n, atom.Div)
		case atom.Td, atom.Th:
			rename(n, atom.Span)
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, n.FirstChild)
		}
	}
}
