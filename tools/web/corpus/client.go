package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

const (
	maxAnswer = 64 << 20 // bytes of a server's answer
	maxSeen   = 64 << 20 // bytes of documents that a client remembers
)

// Client is a corpus on a server that speaks the protocol of Search-R1.
type Client struct {
	base   string
	server *provider.Client
	health health // empty where the server does not tell

	mu    sync.Mutex // guards what follows: documents that searches returned, for servers that have no other way to them
	seen  map[string]Document
	order []string // of their ids and URLs, the oldest first
	bytes int
}

var _ Corpus = (*Client)(nil)

// Dial makes a corpus of the server at an address such as http://localhost:8000 (a /retrieve at its end is ignored), and asks for
// its digest. A server that does not know GET /healthz has its address as digest, and only those documents that earlier searches
// of this client have returned, as far as they are remembered.
func Dial(ctx context.Context, address string, transport http.RoundTripper, now func() time.Time) (*Client, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("the address of a corpus server is %q; want one such as http://localhost:8000", address)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/retrieve")
	server := provider.NewClient(provider.ClientConfig{Most: maxAnswer, Config: provider.Config{
		Name: "the corpus server", BaseURL: base, Transport: transport, Now: now,
	}})
	c := &Client{base: base, server: server, seen: map[string]Document{}}
	body, err := server.Send(ctx, provider.Request{Method: http.MethodGet, Path: "/healthz"})
	var told health
	switch failed, _ := errors.AsType[*source.Error](err); {
	case failed != nil && (failed.Class == "http_404" || failed.Class == "http_405"): // another server
	case err != nil:
		return nil, err
	case json.Unmarshal(body, &told) == nil && told.Digest != "":
		c.health = told
	}
	return c, nil
}

// Search implements Corpus, with at most 100 hits, as many as Handler gives.
func (c *Client) Search(ctx context.Context, query string, limit int) ([]Hit, error) {
	if limit < 1 {
		return nil, source.Errorf(source.Agent, source.Malformed, "limit is %d; want from 1 to %d", limit, maxTopK)
	}
	limit = min(limit, maxTopK)
	var got struct {
		Result [][]struct {
			Document struct {
				ID       json.RawMessage `json:"id"` // text or number, and not all servers have it
				Contents string          `json:"contents"`
				URL      string          `json:"url"`
			} `json:"document"`
			Score float64 `json:"score"`
		} `json:"result"`
	}
	err := c.server.Ask(ctx, provider.Request{
		Method: http.MethodPost, Path: "/retrieve",
		JSON: retrieval{Queries: []string{query}, TopK: &limit, Scores: true},
	}, &got)
	if err != nil {
		return nil, err
	}
	if len(got.Result) != 1 {
		return nil, c.server.Errorf(source.Outage, source.Malformed, "it answers one query with %d lists", len(got.Result))
	}
	a, err := newAnalyser(Plain)
	if err != nil {
		return nil, err
	}
	terms := termsOf(a, query)
	hits := make([]Hit, 0, limit)
	for _, one := range got.Result[0][:min(limit, len(got.Result[0]))] {
		title, text, _ := strings.Cut(one.Document.Contents, "\n")
		d := Document{Title: strings.Trim(title, `"`), URL: one.Document.URL, Text: text}
		if d.ID, err = asText(one.Document.ID); err != nil {
			d.ID = d.Title
		}
		c.remember(d)
		hits = append(hits, Hit{Document: d, Score: one.Score, Snippet: passage(a, text, terms)})
	}
	return hits, nil
}

// Document implements Corpus.
func (c *Client) Document(ctx context.Context, idOrURL string) (Document, error) {
	if c.health.Digest == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if d, ok := c.seen[idOrURL]; ok {
			return d, nil
		}
		return Document{}, notInCorpus(idOrURL)
	}
	path := url.PathEscape(idOrURL)
	if strings.Trim(path, ".") == "" { // "." and ".." are taken out of paths on their way
		path = strings.ReplaceAll(path, ".", "%2E")
	}
	var d Document
	err := c.server.Ask(ctx, provider.Request{Method: http.MethodGet, Path: "/doc/" + path,
		Judge: func(status int, _ []byte) *source.Error {
			if status == http.StatusNotFound {
				return notInCorpus(idOrURL)
			}
			return nil
		},
	}, &d)
	return d, err
}

// Digest implements Corpus.
func (c *Client) Digest() string {
	if c.health.Digest == "" {
		return c.base
	}
	return c.health.Digest
}

// Len implements Corpus.
func (c *Client) Len() int { return c.health.Documents }

// remember keeps a document that a search returned, and forgets the oldest ones when there are too many.
func (c *Client) remember(d Document) {
	if c.health.Digest != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range []string{d.ID, d.URL} {
		if _, known := c.seen[key]; known || key == "" {
			continue
		}
		c.seen[key] = d
		c.order = append(c.order, key)
		c.bytes += d.size()
	}
	for c.bytes > maxSeen {
		c.bytes -= c.seen[c.order[0]].size()
		delete(c.seen, c.order[0])
		c.order = c.order[1:]
	}
}
