package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"trajgen/tools/internal/chars"
	"trajgen/tools/web/source"
)

const (
	maxTitle       = 300 // characters
	maxDescription = 2000
	maxURL         = 2048 // bytes; no browser follows longer ones
)

// results are what a search found, of which the first few are kept: those with an address, in plain text.
func results[T any](found []T, most int, read func(T) source.Result) (kept []source.Result) {
	for _, one := range found {
		if len(kept) == most {
			break
		}
		r := read(one)
		if r.URL = strings.TrimSpace(r.URL); r.URL == "" || len(r.URL) > maxURL {
			continue
		}
		r.Title, r.Description = chars.First(plain(r.Title), maxTitle, "…"), chars.First(plain(r.Description), maxDescription, "…")
		kept = append(kept, r)
	}
	return kept
}

var emphasis = regexp.MustCompile(`</?(?:b|em|i|mark|strong)>`)

// plain is a text on one line, without the marks of emphasis that engines put around words.
func plain(text string) string {
	return strings.Join(strings.Fields(html.UnescapeString(emphasis.ReplaceAllString(text, ""))), " ")
}

// page is a document that the provider read.
func (s *Client) page(address, title, text string) source.Page {
	sum := sha256.Sum256([]byte(text))
	return source.Page{
		URL: address, FinalURL: address, Status: 200, Title: chars.First(plain(title), maxTitle, "…"), Text: text, Bytes: len(text),
		Digest: hex.EncodeToString(sum[:]), Extractor: s.name,
	}
}

// unread is a page that the provider could not read. Its status is the site's, if it is known.
func (s *Client) unread(address string, status int, why string) source.Page {
	p := source.Page{URL: address, FinalURL: address, Status: status, Extractor: s.name}
	why = s.Excerpt(why)
	switch {
	case status == 429, status >= 500:
		p.Error = s.Errorf(source.Outage, source.Unavailable, "%s cannot be read (status %d): %s", address, status, why)
	case status >= 400:
		p.Error = s.Errorf(source.Agent, fmt.Sprint("http_", status), "%s cannot be read (status %d): %s", address, status, why)
	default:
		p.Error = s.Errorf(source.Outage, source.Unavailable, "%s cannot be read: %s", address, why)
	}
	return p
}

// inOrder gives each address that was asked for the page that was read for it. Providers write addresses in their own way.
func (s *Client) inOrder(urls []string, read []source.Page) []source.Page {
	pages := map[string]source.Page{}
	for _, p := range read {
		if _, twice := pages[same(p.URL)]; !twice {
			pages[same(p.URL)] = p
		}
	}
	ordered := make([]source.Page, len(urls))
	for i, address := range urls {
		p, ok := pages[same(address)]
		if !ok && len(urls) == 1 && len(read) == 1 {
			p, ok = read[0], true
		}
		if !ok {
			p = s.unread(address, 0, "the answer has nothing for it")
		}
		p.URL = address
		ordered[i] = p
	}
	return ordered
}

// same is equal for addresses of one page.
func same(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery
}

type reader func(ctx context.Context, address string) (source.Page, error)

// each reads pages one by one, a few at once. What goes wrong with one is that page's error, unless it concerns all.
func (s *Client) each(ctx context.Context, urls []string, read reader) ([]source.Page, error) {
	pages := make([]source.Page, len(urls))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, address := range urls {
		group.Go(func() (err error) {
			pages[i], err = read(inner, address)
			if failed, ok := errors.AsType[*source.Error](err); ok && failed.Blame != source.Operator {
				pages[i], err = source.Page{URL: address, FinalURL: address, Extractor: s.name, Error: failed}, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return pages, nil
}

// expressions writes the patterns of a crawl as regular expressions.
func expressions(patterns []string) (all []string) {
	for _, pattern := range patterns {
		var b strings.Builder
		class := false
		for i := 0; i < len(pattern); i++ {
			switch c := pattern[i]; {
			case c == '\\' && i+1 < len(pattern):
				i++
				b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			case class:
				b.WriteByte(c)
				class = c != ']'
			case c == '[':
				b.WriteByte(c)
				class = true
			case strings.HasPrefix(pattern[i:], "**"):
				i++
				b.WriteString(".*")
			case c == '*':
				b.WriteString("[^/]*")
			case c == '?':
				b.WriteString("[^/]")
			default:
				b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			}
		}
		all = append(all, "^"+b.String()+"$")
	}
	return all
}
