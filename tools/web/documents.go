package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/source"
)

// documents is a corpus as a web of its own: nothing else is found, read or crawled.
type documents struct{ corpus.Corpus }

// Search implements source.Searcher.
func (d documents) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if q.Site != "" || q.After != "" || q.Language != "" {
		return nil, source.Errorf(source.Agent, source.Unsupported, "the corpus cannot be searched by site, date or language: leave it out")
	}
	hits, err := d.Corpus.Search(ctx, q.Text, min(q.Limit, corpus.MaxHits))
	if err != nil {
		return nil, err
	}
	var found []source.Result
	for _, hit := range hits {
		found = append(found, source.Result{Title: hit.Title, URL: address(hit.Document), Description: hit.Snippet})
	}
	return found, nil
}

// address is by what a document is asked for.
func address(d corpus.Document) string {
	if d.URL != "" {
		return d.URL
	}
	return d.ID
}

// Read implements source.Reader.
func (d documents) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	var pages []source.Page
	for _, url := range urls {
		page, err := d.read(ctx, url)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// read reads a document. Its error is one of the corpus, and not of the address.
func (d documents) read(ctx context.Context, url string) (source.Page, error) {
	page := source.Page{URL: url}
	found, err := d.Document(ctx, url)
	if e, ok := errors.AsType[*source.Error](err); ok && e.Blame == source.Agent {
		page.Error = e
		return page, nil
	}
	if err != nil {
		return page, err
	}
	sum := sha256.Sum256([]byte(found.Text))
	page.FinalURL, page.Title, page.Text, page.Type = address(found), found.Title, found.Text, "text/markdown"
	page.Bytes, page.Digest, page.Extractor, page.Links = len(found.Text), hex.EncodeToString(sum[:]), "corpus", corpus.Links(found)
	return page, nil
}

// Crawl implements source.Crawler: breadth first, along links between documents.
func (d documents) Crawl(ctx context.Context, c source.Crawl) ([]source.Page, error) {
	type step struct {
		url   string
		depth int
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	var pages []source.Page
	seen := map[string]bool{c.URL: true}
	for next := []step{{c.URL, 0}}; len(next) > 0 && len(pages) < c.Limit; next = next[1:] {
		page, err := d.read(ctx, next[0].url)
		if err != nil {
			return nil, err
		}
		if page.Error != nil && len(pages) > 0 {
			continue // a link out of the corpus
		}
		pages = append(pages, page)
		for _, link := range page.Links {
			if next[0].depth < c.Depth && !seen[link.URL] && wants(c, link.URL) {
				seen[link.URL] = true
				next = append(next, step{link.URL, next[0].depth + 1})
			}
		}
	}
	return pages, nil
}

func wants(c source.Crawl, address string) bool {
	u, err := url.Parse(address)
	return err == nil && c.Wants(u.Path)
}
