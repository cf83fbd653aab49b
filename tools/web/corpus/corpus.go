// Package corpus searches a fixed set of documents by BM25: in one file that is built once, or on a server that speaks the
// protocol of Search-R1.
//
// Read (read.go, warc.go) yields the documents of files, and Build (build.go) makes an index of them: one sorted table (table.go)
// of documents, of their ids, URLs and lengths, and of terms with their postings (postings.go). What is sorted while it is built
// goes through a file (runs.go), so that the memory of a build hardly grows with the number of documents. Open (index.go) maps the
// file, and Search (search.go) ranks. Handler (server.go) serves any Corpus, and Dial (client.go) makes one of a server.
package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

// Corpus is a set of documents that can be searched. An Index and a Client are corpora. Its methods may be called from many
// goroutines; an error is a *source.Error unless ctx has ended.
type Corpus interface {
	// Search finds the documents that match a query best, at most limit (from 1 to MaxHits) of them, the best first.
	Search(ctx context.Context, query string, limit int) ([]Hit, error)
	// Document returns the document with an id, or else the first one with a URL.
	Document(ctx context.Context, idOrURL string) (Document, error)
	// Digest is equal for corpora with the same documents, as far as it is known.
	Digest() string
	// Len is the number of documents, 0 where it is not known.
	Len() int
}

// MaxHits is the most that a search returns.
const MaxHits = 1000

// Document is a text with its name and address.
type Document struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
	Text  string `json:"text"`
	Place string `json:"-"` // where it was read, such as pages.jsonl:17, for errors of Build; an index does not keep it
}

// Hit is a document that a search found.
type Hit struct {
	Document
	Score   float64
	Snippet string // the passage that matches best, at most 300 characters
}

// Bounds of a document in bytes.
const (
	MaxDocument = 16 << 20 // all of it
	maxKey      = 4096     // its id, and its URL
)

// InputError is a document that cannot be read or be part of a corpus.
type InputError struct {
	Place, Reason string
}

func (e *InputError) Error() string { return e.Place + ": " + e.Reason }

// check says why a document cannot be part of a corpus, "" when it can.
func (d Document) check() string {
	switch {
	case d.ID == "":
		return "the document has no id"
	case len(d.ID) > maxKey || len(d.URL) > maxKey:
		return fmt.Sprintf("the id or the URL is longer than %d bytes", maxKey)
	case d.size() > MaxDocument:
		return fmt.Sprintf("the document is larger than %d MiB; divide it", MaxDocument>>20)
	}
	for _, field := range [][2]string{{"id", d.ID}, {"title", d.Title}, {"url", d.URL}, {"text", d.Text}} {
		if !utf8.ValidString(field[1]) {
			return "the " + field[0] + " is not UTF-8"
		}
	}
	return ""
}

func (d Document) size() int { return len(d.ID) + len(d.Title) + len(d.URL) + len(d.Text) }

// sum is the digest of what a document says.
func (d Document) sum() []byte {
	hash := sha256.New()
	for _, field := range []string{d.Title, d.URL, d.Text} {
		_ = binary.Write(hash, binary.LittleEndian, uint64(len(field))) // a hash takes all
		_, _ = io.WriteString(hash, field)
	}
	return hash.Sum(nil)
}

// markdownLink is a link with its target, which may be in <> and may have () in it. An image begins with !.
var markdownLink = regexp.MustCompile(`(!?)\[([^\[\]]*)\]` +
	`\(\s*(?:<([^<>\n]+)>|((?:[^\s<>()]|\([^\s<>()]*\))+))\s*(?:"[^"]*"|'[^']*')?\s*\)`)

// Links are the links in a document's Markdown, in their order: resolved against its URL or, where it has none, against its id,
// as the documents of a folder link to each other by their paths.
func Links(d Document) []source.Link {
	base, err := url.Parse(d.URL)
	if d.URL == "" {
		base, err = &url.URL{Path: "/" + d.ID}, nil
	}
	if err != nil {
		return nil
	}
	var links []source.Link
	for _, found := range markdownLink.FindAllStringSubmatch(d.Text, -1) {
		target, err := base.Parse(found[3] + found[4])
		if err != nil || found[1] != "" {
			continue
		}
		address := target.String()
		if target.Scheme == "" && target.Host == "" {
			address = strings.TrimPrefix(target.Path, "/")
		}
		links = append(links, source.Link{URL: address, Text: found[2]})
	}
	return links
}

func notInCorpus(idOrURL string) *source.Error {
	return source.Errorf(source.Agent, source.NotInCorpus,
		"the corpus has no document %q. Search first, and use an id or a URL exactly as the results have it", chars.First(idOrURL, 100, "…"))
}
