// Package extract makes text for a model from the body of a web page: Markdown from HTML and feeds, text in UTF-8 from the rest.
package extract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// Version names what decides about a text, for fingerprints: the revision of this package, and the modules that it uses.
const Version = "extract 1, go-readability v0.0.0-20251205110129-5db1dc9836f0, html-to-markdown v2.5.2, " +
	"chardet v0.0.0-20211120154057-b7413eaefb8f, x/net v0.62.0, x/text v0.43.0"

// Bounds of what is read. Longer text is read in part, and its end says so.
const (
	maxText  = 1_000_000 // characters of a text, where Config does not say
	maxBody  = 10 << 20  // bytes of a body that become text
	maxPDF   = 25 << 20  // bytes of a PDF
	maxTitle = 300       // characters
	maxLinks = 500
	maxURL   = 2000 // bytes of a link
)

// Config is what an Extractor works with.
type Config struct {
	// PDF makes the text of a document, as pdftotext does; nil where that is missing. Its error is the page's where it is a
	// *source.Error. Any other means that the document is broken.
	PDF func(ctx context.Context, body []byte) (string, error)
	// MaxText is the most characters of a page's text; 0 means 1,000,000.
	MaxText int
}

// Extractor makes pages. Many goroutines may use it.
type Extractor struct {
	pdf      func(context.Context, []byte) (string, error)
	maxText  int
	markdown *converter.Converter
}

// New makes an Extractor.
func New(c Config) *Extractor {
	if c.MaxText <= 0 {
		c.MaxText = maxText
	}
	return &Extractor{pdf: c.PDF, maxText: c.MaxText, markdown: newConverter()}
}

// Page returns page with what its body says. The URL, and FinalURL where there is one, are what links are relative to, and
// contentType is HTTP's header, or "". An error that the page has already stays, as the text of an error page helps too. The
// same body gives the same page, always; when ctx ends meanwhile, the page has an error.
func (x *Extractor) Page(ctx context.Context, page source.Page, body []byte, contentType string) source.Page {
	sum := sha256.Sum256(body)
	page.Bytes, page.Digest = len(body), hex.EncodeToString(sum[:])
	var form form
	page.Type, form = sniff(contentType, body)
	err := x.fill(ctx, &page, form, body, contentType)
	if ctx.Err() != nil {
		page.Text = ""
		err = source.Errorf(source.Outage, source.Unavailable, "The time for reading the page is over: %v.", context.Cause(ctx))
	}
	if page.Error == nil {
		page.Error = err
	}
	return page
}

// fill gives the page what a body of this form says.
func (x *Extractor) fill(ctx context.Context, page *source.Page, form form, body []byte, contentType string) *source.Error {
	size := len(body)
	if len(bytes.TrimSpace(body)) == 0 {
		return source.Errorf(source.Agent, source.NoText, "The page is empty.")
	}
	switch form {
	case binary, picture:
		return noText(page.Type, form, int64(size))
	case pdf:
		return x.document(ctx, page, body)
	}
	cut := size > maxBody
	text := decode(body[:min(size, maxBody)], contentType, form)
	switch form {
	case htmlForm:
		x.html(ctx, page, text)
	case xmlForm:
		if !x.feed(ctx, page, text) {
			page.Text, page.Extractor = text, "text"
		}
	case jsonForm:
		page.Text, page.Extractor = indent(text, x.maxText*utf8.UTFMax), "json"
	default:
		page.Text, page.Extractor = text, "text"
		page.Title = markdownTitle(text)
	}
	page.Title = chars.First(strings.Join(strings.Fields(page.Title), " "), maxTitle, "…")
	x.bound(page, cut)
	if page.Text == "" {
		page.Extractor = ""
		return source.Errorf(source.Agent, source.NoText,
			"The page has no text. Perhaps its scripts make it, which a browser would run.")
	}
	return nil
}

// document makes the text of a PDF.
func (x *Extractor) document(ctx context.Context, page *source.Page, body []byte) *source.Error {
	if x.pdf == nil {
		return source.Errorf(source.Operator, source.NoText, "The text of a PDF cannot be read here: pdftotext is missing.")
	}
	if len(body) > maxPDF {
		return source.Errorf(source.Agent, source.TooLarge, "The PDF has %d bytes, and %d are read at most.", len(body), maxPDF)
	}
	text, err := x.pdf(ctx, body)
	if known, ok := errors.AsType[*source.Error](err); ok {
		return known
	}
	if err != nil {
		return source.Errorf(source.Agent, source.Malformed, "The PDF cannot be read: %v", err)
	}
	page.Text, page.Extractor = strings.ReplaceAll(lines(text), "\f", "\n\n"), "pdftotext"
	x.bound(page, false)
	if page.Text == "" {
		return source.Errorf(source.Agent, source.NoText, "The PDF has no text: its pages are pictures.")
	}
	return nil
}

// bound cuts a text that is too long, and says so at its end. With cut set, the body had more than was read.
func (x *Extractor) bound(page *source.Page, cut bool) {
	page.Text = strings.TrimSpace(page.Text)
	if part, next := Cut(page.Text, 0, x.maxText); next != 0 {
		page.Text, cut = strings.TrimSpace(part), true
	}
	if cut {
		page.Text += "\n\n[The page goes on. Only its beginning was read.]"
	}
}
