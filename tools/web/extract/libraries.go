package extract

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
)

// Bounds of what the libraries are given, as their time and memory grow faster than the page.
const (
	maxReadable = 50_000  // elements of a page whose main content is looked for
	maxElements = 250_000 // elements of a page that is made a tree
)

// mainContent returns the part of a tree that holds the text that the page is there for, or nil.
func mainContent(doc *html.Node, address *url.URL) *html.Node {
	parser := readability.NewParser()
	parser.KeepClasses = true // of which code has the name of its language
	parser.DisableJSONLD = true
	var main *html.Node
	if err := guarded(func() error {
		article, err := parser.ParseDocument(doc, address)
		main = article.Node
		return err
	}); err != nil {
		return nil
	}
	return main
}

// newConverter returns what writes Markdown.
func newConverter() *converter.Converter {
	// Nothing is escaped: the reader is a model, and what undoes needless escapes takes the square of the length of a line.
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			// to the width of the widest it is a multiple of the text
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
			table.WithSkipEmptyRows(true),
		),
	))
	// The plugins write &lt; for < even so. What stands for it meanwhile is not in any text.
	away, back := strings.NewReplacer("<", "\uFDD0", ">", "\uFDD1"), strings.NewReplacer("\uFDD0", "<", "\uFDD1", ">")
	c.Register.TextTransformer(func(_ converter.Context, text string) string { return away.Replace(text) },
		converter.PriorityEarly)
	c.Register.PostRenderer(func(_ converter.Context, text []byte) []byte { return []byte(back.Replace(string(text))) },
		converter.PriorityLate)
	return c
}

// bytes is the most bytes of the text of a page.
func (x *Extractor) bytes() int { return x.maxText * utf8.UTFMax }

// render returns a tree as Markdown. It changes the tree.
func (x *Extractor) render(n *html.Node) string {
	limit(n, x.bytes(), 0)
	var text []byte
	if err := guarded(func() (err error) {
		text, err = x.markdown.ConvertNode(n)
		return err
	}); err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// guarded calls f, and makes an error of its panic: the libraries were written for pages that mean well.
func guarded(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return f()
}
