package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"trajgen/tools/web/source"
)

const (
	maxAnswer = 64 << 20 // bytes of a server's answer
	maxSeen   = 64 << 20 // bytes of documents that a client remembers
)

// Client is a corpus on a server that speaks the protocol of Search-R1.
type Client struct {
	base   string
	http   *http.Client
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
func Dial(ctx context.Context, address string, transport http.RoundTripper) (*Client, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("the address of a corpus server is %q; want one such as http://localhost:8000", address)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{
		base: strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/retrieve"), seen: map[string]Document{},
		http: &http.Client{Transport: transport, CheckRedirect: stay},
	}
	status, body, err := c.ask(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return nil, err
	}
	switch status {
	case http.StatusOK:
		var told health
		if json.Unmarshal(body, &told) == nil && told.Digest != "" { // anything else is another server's
			c.health = told
		}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return nil, c.refused(status, body)
	}
	return c, nil
}

// Search implements Corpus, with at most 100 hits, as many as Handler gives.
func (c *Client) Search(ctx context.Context, query string, limit int) ([]Hit, error) {
	if limit < 1 {
		return nil, source.Errorf(source.Agent, source.Malformed, "limit is %d; want from 1 to %d", limit, maxTopK)
	}
	limit = min(limit, maxTopK)
	body, err := json.Marshal(retrieval{Queries: []string{query}, TopK: &limit, Scores: true})
	if err != nil {
		return nil, source.Errorf(source.Agent, source.Malformed, "the query cannot be sent: %v", err)
	}
	status, said, err := c.ask(ctx, http.MethodPost, "/retrieve", body)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, c.refused(status, said)
	}
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
	if err := json.Unmarshal(said, &got); err != nil || len(got.Result) != 1 {
		return nil, unreadable(said)
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
	status, said, err := c.ask(ctx, http.MethodGet, "/doc/"+path, nil)
	switch {
	case err != nil:
		return Document{}, err
	case status == http.StatusNotFound:
		return Document{}, notInCorpus(idOrURL)
	case status != http.StatusOK:
		return Document{}, c.refused(status, said)
	}
	var d Document
	if err := json.Unmarshal(said, &d); err != nil {
		return Document{}, unreadable(said)
	}
	return d, nil
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

// ask sends a request and reads the answer.
func (c *Client) ask(ctx context.Context, method, path string, body []byte) (status int, said []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, source.Errorf(source.Agent, source.Malformed, "the corpus server cannot be asked for that: %v", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err == nil {
		defer response.Body.Close()
		said, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	}
	if err != nil && ctx.Err() != nil {
		return 0, nil, context.Cause(ctx)
	}
	if ours, ok := errors.AsType[*source.Error](err); ok {
		return 0, nil, ours // of the transport
	}
	if err != nil {
		return 0, nil, source.Errorf(source.Outage, source.Unavailable, "the corpus server does not answer: %v", err)
	}
	if len(said) > maxAnswer {
		return 0, nil, source.Errorf(source.Outage, source.Malformed,
			"the corpus server's answer is larger than %d MiB", maxAnswer>>20)
	}
	return response.StatusCode, said, nil
}

func unreadable(said []byte) error {
	return source.Errorf(source.Outage, source.Malformed, "the corpus server's answer cannot be read: %.200s", said)
}

// refused is the error of a status.
func (c *Client) refused(status int, said []byte) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return source.Errorf(source.Operator, source.Refused, "the corpus server refuses with status %d: %.200s", status, said)
	case status == http.StatusTooManyRequests || status >= 500:
		return source.Errorf(source.Outage, source.Unavailable, "the corpus server answers with status %d: %.200s", status, said)
	}
	return source.Errorf(source.Operator, source.Malformed,
		"the corpus server answers with status %d, so it may be none: %.200s", status, said)
}
