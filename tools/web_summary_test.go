package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools"
	"trajgen/tools/web"
	"trajgen/tools/web/corpus"
)

// shortener is a model that shortens pages, and knows what it was asked.
type shortener struct {
	reply func(request string) (string, error)

	mu    sync.Mutex
	asked []string
}

func (s *shortener) Complete(_ context.Context, req model.Request) (model.Reply, error) {
	request := req.Messages[1].Content
	s.mu.Lock()
	s.asked = append(s.asked, request)
	s.mu.Unlock()
	text, err := s.reply(request)
	if err != nil {
		return model.Reply{}, err
	}
	return model.Reply{
		Message: episode.Message{Role: "assistant", Content: text}, Model: "small-2026",
		Usage: episode.Usage{Prompt: 1000, Completion: 10, Reported: true},
	}, nil
}

// library has pages of any number of characters, each a numbered paragraph.
func library(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var size int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &size)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for n, written := 0, 0; written < size; n++ {
			k, _ := fmt.Fprintf(w, "%d %s.\n\n", n, strings.Repeat("x", min(960, size)))
			written += k
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// TestSummaries reads pages of many lengths in an episode whose run names a model for summaries.
func TestSummaries(t *testing.T) {
	server := library(t)
	small := &shortener{reply: func(request string) (string, error) {
		return fmt.Sprintf("A summary of %d characters.", len(request)), nil
	}}
	summarizer := &tools.Summarizer{
		Model: small, Settings: web.Summary{Model: "small"},
		Side: model.Side{
			Ask:   func(_, _ string, _ any, ask func() error) error { return ask() },
			Price: func(u episode.Usage, names ...string) *float64 { return new(float64(u.Prompt)) },
		},
	}
	view := openWeb(t, web.Settings{AllowPrivate: []string{"127.0.0.1"}}).View("ep", 1)
	e := surfing(t, view, summarizer)
	read := func(size int, more args) (page args, about web.About) {
		t.Helper()
		small.asked = nil
		given := args{"urls": []string{fmt.Sprintf("%s/%d", server.URL, size)}}
		for name, value := range more {
			given[name] = value
		}
		call := e.call("web_extract", given)
		if err := json.Unmarshal(call.Source, &about); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(about.Asked, call.Inquiries()); diff != "" {
			t.Errorf("inquiries (-source +call):\n%s", diff)
		}
		if results, ok := decode(t, call.Result)["results"]; ok {
			page = results.([]any)[0].(args)
		} else {
			page = args{"error": decode(t, call.Result)["error"]}
		}
		return page, about
	}

	if page, about := read(2000, nil); page["summarized"] != nil || len(small.asked) != 0 || about.Asked != nil {
		t.Errorf("a short page: %v, %v", page, about.Asked)
	}
	page, about := read(20_000, nil)
	if content, _ := page["content"].(string); !strings.HasPrefix(content, "A summary of 2") || page["summarized"] != true || page["length"].(float64) < 20_000 || page["next_offset"] != nil {
		t.Errorf("a long page: %v", page)
	}
	q := about.Asked[0]
	if len(about.Asked) != 1 || q.Model != "small-2026" || q.Asked != "small" || q.Usage.Prompt != 1000 || *q.CostUSD != 1000 || len(q.Prompt) != 64 || q.Text != about.Pages[0].Text || len(q.Text) != 64 {
		t.Errorf("asked %+v of %+v", about.Asked, about.Pages)
	}
	for _, own := range []args{{"raw": true}, {"offset": 10}} {
		if page, about := read(20_000, own); page["summarized"] != nil || len(small.asked) != 0 || about.Asked != nil || page["next_offset"] == nil {
			t.Errorf("%v: %v", own, page)
		}
	}

	// A page over 500,000 characters is shortened in parts, and then as a whole.
	if page, about := read(600_000, nil); page["summarized"] != true || len(small.asked) != 8 || len(about.Asked) != 8 || about.Asked[7].Text == about.Pages[0].Text {
		t.Errorf("a very long page: %v, %d requests", page, len(small.asked))
	} else if last := small.asked[7]; strings.Count(last, "A summary of") != 7 {
		t.Errorf("the last request is %.300q", last)
	}
	// Our own extraction ends before 2,000,000 characters; a corpus has what it has.
	path := filepath.Join(t.TempDir(), "long.corpus")
	long := func(yield func(corpus.Document, error) bool) {
		yield(corpus.Document{ID: "long", Title: "Long", Text: strings.Repeat("word ", 420_000)}, nil)
	}
	if _, err := corpus.Build(t.Context(), path, long, corpus.Options{}); err != nil {
		t.Fatal(err)
	}
	small.asked = nil
	library := surfing(t, openWeb(t, web.Settings{Mode: web.Corpus, Corpus: path}).View("ep", 1), summarizer)
	library.fails("too_large", "web_extract", args{"urls": []string{"long"}})
	own := library.ok("web_extract", args{"urls": []string{"long"}, "raw": true})["results"].([]any)[0].(args)
	if len(small.asked) != 0 || own["next_offset"] != 5000.0 {
		t.Errorf("%d requests, next offset %v", len(small.asked), own["next_offset"])
	}

	// A summary is cut like a page, and where there is none the page's beginning is shown, with a notice.
	small.reply = func(string) (string, error) { return strings.Repeat("word ", 3000), nil }
	if page, _ := read(20_000, nil); len(page["content"].(string)) != 5000 {
		t.Errorf("a summary of %d characters", len(page["content"].(string)))
	}
	for _, size := range []int{20_000, 600_000} {
		small.reply = func(request string) (string, error) {
			if strings.Contains(request, "part 3 of") || size < 500_000 {
				return "", &model.Error{Class: model.ClassTimeout, Message: "slow"}
			}
			return "A part.", nil
		}
		page, about := read(size, nil)
		wantContains(t, page["notice"], "could not be summarised (timeout)")
		wantContains(t, page["content"], "0 xxx")
		if last := about.Asked[len(about.Asked)-1]; last.Failed != "timeout" || last.Usage != nil || page["next_offset"] == nil || page["summarized"] != nil {
			t.Errorf("asked %+v, page %v", last, page)
		}
	}

	// A model that no request can reach is the operator's to mend.
	small.reply = func(string) (string, error) {
		return "", &model.Error{Class: "unauthorized", Fatal: true, Message: "the key is refused"}
	}
	e.fails("summary_model", "web_extract", args{"urls": []string{server.URL + "/20000"}})
	if fault := e.session.Fault(); fault == nil || fault.Outcome != episode.ToolError {
		t.Errorf("fault %v", fault)
	}
}

// TestCrawlSummaries tells the model what a crawl looks for.
func TestCrawlSummaries(t *testing.T) {
	server := library(t)
	small := &shortener{reply: func(string) (string, error) { return "Short.", nil }}
	e := surfing(t, openWeb(t, web.Settings{AllowPrivate: []string{"127.0.0.1"}}).View("ep", 1), &tools.Summarizer{
		Model: small, Settings: web.Summary{Model: "small", MaxChars: 100},
		Side: model.Side{
			Ask:   func(_, _ string, _ any, ask func() error) error { return ask() },
			Price: func(episode.Usage, ...string) *float64 { return nil },
		},
	})
	page := e.ok("web_crawl", args{"url": server.URL + "/9000", "instructions": "the number of paragraphs"})["results"].([]any)[0].(args)
	if page["content"] != "Short." || !strings.Contains(small.asked[0], "looks for: the number of paragraphs") || !strings.Contains(small.asked[0], "at most 80 characters") {
		t.Errorf("%v; asked %.300q", page, small.asked)
	}
}
