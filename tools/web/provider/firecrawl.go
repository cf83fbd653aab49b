package provider

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trajgen/tools/web/source"
)

// firecrawl is api.firecrawl.dev in its version 2, which servers of one's own speak, too.
type firecrawl struct{ *Client }

var firecrawlKind = kind{
	variable: "FIRECRAWL_API_KEY", base: "https://api.firecrawl.dev", auth: "Authorization:Bearer ", most: 100,
	filters: []filter{site, after},
	open:    func(s *Client, _ Config) (Provider, error) { return firecrawl{s}, nil },
}

func (f firecrawl) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	if err := f.accept(&q); err != nil {
		return nil, err
	}
	type found struct{ URL, Title, Description string }
	var answer struct{ Data struct{ Web []found } }
	body := map[string]any{"query": operators(q), "limit": q.Limit, "sources": []string{"web"}}
	if q.After != "" {
		body["tbs"] = "cdr:1,cd_min:" + american(q.After) + ",cd_max:" + american(farAway)
	}
	if err := f.post(ctx, "/v2/search", body, &answer); err != nil {
		return nil, err
	}
	return results(answer.Data.Web, q.Limit, func(w found) source.Result {
		return source.Result{Title: w.Title, URL: w.URL, Description: w.Description}
	}), nil
}

// american is a day such as 2024-01-31 as 01/31/2024.
func american(day string) string {
	year, rest, _ := strings.Cut(day, "-")
	return strings.ReplaceAll(rest, "-", "/") + "/" + year
}

// firecrawlPage is a page that was read. Its status is that of the site, whatever that of the answer is.
type firecrawlPage struct {
	Markdown string
	Metadata struct {
		Title, SourceURL, Error string
		StatusCode              int
	}
}

func (f firecrawl) document(address string, p firecrawlPage) source.Page {
	if p.Metadata.StatusCode >= 400 || p.Markdown == "" && p.Metadata.Error != "" {
		return f.unread(address, p.Metadata.StatusCode, p.Metadata.Error)
	}
	page := f.page(address, p.Metadata.Title, p.Markdown)
	if p.Metadata.StatusCode > 0 {
		page.Status = p.Metadata.StatusCode
	}
	return page
}

// formats says what is wanted of a page.
func formats() map[string]any {
	return map[string]any{"formats": []string{"markdown"}, "onlyMainContent": true}
}

func (f firecrawl) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	return f.each(ctx, urls, func(ctx context.Context, address string) (source.Page, error) {
		body := formats()
		body["url"] = address
		var answer struct{ Data firecrawlPage }
		if err := f.post(ctx, "/v2/scrape", body, &answer); err != nil {
			return source.Page{}, err
		}
		return f.document(address, answer.Data), nil
	})
}

// firecrawlJob is how far a crawl is.
type firecrawlJob struct {
	ID     string
	Status string // scraping, then completed, failed or cancelled
	Data   []firecrawlPage
	Next   string // where the rest of the pages is
}

// Crawl begins a job of the service and waits for its end. Instructions are followed with a model of theirs.
func (f firecrawl) Crawl(ctx context.Context, c source.Crawl) (pages []source.Page, err error) {
	c.Limit = max(c.Limit, 1)
	body := map[string]any{"url": c.URL, "limit": c.Limit, "maxDiscoveryDepth": max(c.Depth, 0), "scrapeOptions": formats()}
	if c.Instructions != "" {
		body["prompt"] = c.Instructions
	}
	if len(c.Include) > 0 {
		body["includePaths"] = expressions(c.Include)
	}
	if len(c.Exclude) > 0 {
		body["excludePaths"] = expressions(c.Exclude)
	}
	var job firecrawlJob
	if err := f.Ask(ctx, Request{Method: http.MethodPost, Path: crawlPath, JSON: body, Costly: true}, &job); err != nil {
		return nil, err
	}
	if job.ID == "" {
		return nil, f.Errorf(source.Outage, source.Malformed, "it began a crawl without an id")
	}
	path := crawlPath + "/" + url.PathEscape(job.ID)
	for polls := 0; job.Status != "completed"; polls++ {
		if polls == maxPolls {
			return nil, errors.Join(f.Errorf(source.Outage, source.Unavailable, "the crawl of %s does not end", c.URL), f.cancel(ctx, path))
		}
		if err := f.pause(ctx, pollEvery); err != nil {
			return nil, errors.Join(err, f.cancel(ctx, path))
		}
		job = firecrawlJob{}
		if err := f.Ask(ctx, Request{Method: http.MethodGet, Path: path}, &job); err != nil {
			if ctx.Err() != nil {
				err = errors.Join(err, f.cancel(ctx, path))
			}
			return nil, err
		}
		if job.Status == "failed" || job.Status == "cancelled" {
			return nil, f.Errorf(source.Outage, source.Unavailable, "the crawl of %s has %s", c.URL, job.Status)
		}
	}
	return f.collect(ctx, job, c.Limit)
}

const (
	crawlPath = "/v2/crawl"
	pollEvery = 2 * time.Second
	maxPolls  = 300
)

// collect gathers the pages of a job that is completed.
func (f firecrawl) collect(ctx context.Context, job firecrawlJob, most int) (pages []source.Page, err error) {
	for {
		for _, p := range job.Data {
			if len(pages) < most {
				pages = append(pages, f.document(p.Metadata.SourceURL, p))
			}
		}
		if job.Next == "" || len(job.Data) == 0 || len(pages) >= most {
			return pages, nil
		}
		// The key goes to the base URL and nowhere else, wherever the rest is said to be.
		_, rest, found := strings.Cut(job.Next, crawlPath+"/")
		if !found {
			return nil, f.Errorf(source.Outage, source.Malformed, "the rest of the crawl is said to be at %s", f.Excerpt(job.Next))
		}
		job = firecrawlJob{}
		if err := f.Ask(ctx, Request{Method: http.MethodGet, Path: crawlPath + "/" + rest}, &job); err != nil {
			return nil, err
		}
	}
}

// cancel ends a job that its caller does not wait for any more: each page costs.
func (f firecrawl) cancel(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return f.Ask(ctx, Request{Method: http.MethodDelete, Path: path}, &struct{}{})
}

// pause waits, unless a recording answers.
func (s *Client) pause(ctx context.Context, d time.Duration) error {
	if s.hasty {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
