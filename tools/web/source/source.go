// Package source has the nouns of the web tools, and the interfaces of what answers them: a search provider, the live web, a
// recording, a corpus.
package source

import (
	"context"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Query is what a search looks for.
type Query struct {
	Text     string
	Limit    int    // most results; at least 1
	Language string // ISO 639-1, such as en; "" for any
	Site     string // a host that results must come from; "" for any
	After    string // the earliest date of publication, as 2006-01-02; "" for any
}

// Result is a page that a search found.
type Result struct {
	Title       string
	URL         string
	Description string
	Published   string // as the source wrote it; "" where it did not say
}

// Page is a document that was read. A page that could not be read has an Error and what is known besides.
type Page struct {
	URL       string // as it was asked for
	FinalURL  string // after redirects
	Status    int    // of HTTP; 0 where there is none
	Type      string // media type without parameters, such as text/html
	Title     string
	Text      string // Markdown, or plain text
	Links     []Link
	Bytes     int    // of the body as it came, decoded
	Digest    string // sha256 of that body, in hex
	Extractor string // what made Text from the body, such as readability, body, json, pdftotext; or the provider's name
	Error     *Error
}

// Link is a link of a page, resolved against its URL.
type Link struct {
	URL, Text string
}

// Crawl says which pages a crawl reads.
type Crawl struct {
	URL          string
	Instructions string // for providers that choose pages by a model of theirs
	Limit        int    // most pages
	Depth        int    // most links between the first page and another
	Include      []string
	Exclude      []string // patterns of path.Match for the URL's path, with ** for any number of its parts
}

// Check refuses what is not a pattern.
func (c Crawl) Check() error {
	for _, pattern := range slices.Concat(c.Include, c.Exclude) {
		// Braces within braces would take for ever.
		if !doublestar.ValidatePattern(pattern) || strings.Contains(pattern, "{") {
			return Errorf(Agent, Malformed, "%.100q is not a pattern for paths, such as /docs/**", pattern)
		}
	}
	return nil
}

// Wants says whether the patterns take a path.
func (c Crawl) Wants(path string) bool {
	matches := func(pattern string) bool { ok, _ := doublestar.Match(pattern, path); return ok }
	return !slices.ContainsFunc(c.Exclude, matches) && (len(c.Include) == 0 || slices.ContainsFunc(c.Include, matches))
}

// Searcher finds pages. Its methods, like those of the other interfaces here, may be called from many goroutines; an error is
// an *Error unless ctx has ended.
type Searcher interface {
	Search(ctx context.Context, q Query) ([]Result, error)
}

// Reader reads pages: one for each URL, in their order. What goes wrong with one page is the page's Error.
type Reader interface {
	Read(ctx context.Context, urls []string) ([]Page, error)
}

// Crawler reads a page and pages that it leads to.
type Crawler interface {
	Crawl(ctx context.Context, c Crawl) ([]Page, error)
}
