package web

import (
	"context"
	"net/http"
	"sync"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/fetch"
	"trajgen/tools/web/source"
	"trajgen/tools/web/tape"
)

// View is the web of one attempt at an episode. Its methods may be called from many goroutines.
type View struct {
	web     *Web
	episode string
	attempt int
	begin   func() sides // at the first use: most of the episodes in flight may never need it
}

// sides are who answers.
type sides struct {
	searcher        source.Searcher
	reader          source.Reader
	crawler         source.Crawler
	searches, reads string        // their names with version
	played          *tape.Playing // nil but in mode replay
}

// View is the web of an attempt.
func (w *Web) View(episode string, attempt int) *View {
	v := &View{web: w, episode: episode, attempt: attempt}
	v.begin = sync.OnceValue(v.sides)
	return v
}

func (v *View) sides() (s sides) {
	w := v.web
	if w.mode() == Corpus {
		documents := documents{w.corpus}
		name := "corpus " + w.corpus.Digest()
		return sides{searcher: documents, reader: documents, crawler: documents, searches: name, reads: name}
	}
	through := func(_ string, live http.RoundTripper) http.RoundTripper { return live }
	switch {
	case w.recorder != nil:
		recording := w.recorder.Play(v.episode, v.attempt)
		through = func(version string, live http.RoundTripper) http.RoundTripper {
			return recording.Transport("", version, live)
		}
	case w.tape != nil:
		s.played = w.tape.Play(v.episode)
		through = func(version string, _ http.RoundTripper) http.RoundTripper { return s.played.Transport(version) }
	}
	// They were opened with the run, so that they open again.
	s.searches = w.search.Version()
	searcher, _ := w.service(w.search, through(s.searches, w.services))
	s.searcher = searcher.(source.Searcher)
	if w.extract.Name == "" {
		s.reads = fetch.Version
		own := w.fetcher.With(through(s.reads, w.live))
		s.reader, s.crawler = own, own
		return s
	}
	s.reads = w.extract.Version()
	reader, _ := w.service(w.extract, through(s.reads, w.services))
	s.reader = reader.(source.Reader)
	if s.crawler, _ = reader.(source.Crawler); s.crawler == nil {
		s.crawler = w.fetcher.With(through(fetch.Version, w.live))
	}
	return s
}

// Search finds pages.
func (v *View) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	found, err := v.begin().searcher.Search(ctx, q)
	if len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, err
}

// Read reads pages, one for each URL.
func (v *View) Read(ctx context.Context, urls []string) ([]source.Page, error) {
	return v.begin().reader.Read(ctx, urls)
}

// Crawl reads a page and pages that it leads to.
func (v *View) Crawl(ctx context.Context, c source.Crawl) ([]source.Page, error) {
	return v.begin().crawler.Crawl(ctx, c)
}

// Corpus is what search, open and find answer from; nil without one.
func (v *View) Corpus() corpus.Corpus { return v.web.corpus }

// Lacking reports whether the recording lacked more requests of this episode than a run allows.
func (v *View) Lacking() bool {
	played := v.begin().played
	if played == nil {
		return false
	}
	misses := 0
	for _, n := range played.Stats().Misses {
		misses += n
	}
	return misses > v.web.config.Settings.MaxMisses
}

// About is what answered a call, as its row has it.
type About struct {
	Mode  string      `json:"mode"`
	By    string      `json:"by"`
	Pages []AboutPage `json:"pages,omitempty"`
}

// AboutPage is what is known of a page beside what the model sees.
type AboutPage struct {
	URL       string `json:"url"`
	FinalURL  string `json:"final_url,omitempty"`
	Status    int    `json:"status,omitempty"`
	Type      string `json:"type,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`
	Digest    string `json:"sha256,omitempty"`
	Extractor string `json:"extractor,omitempty"`
	Error     string `json:"error_class,omitempty"`
}

// Searched is what answered a search.
func (v *View) Searched() About { return About{Mode: v.web.mode(), By: v.begin().searches} }

// Have is what answered from the corpus.
func (v *View) Have() About { return About{Mode: Corpus, By: "corpus " + v.web.corpus.Digest()} }

// Came is where pages came from.
func (v *View) Came(pages []source.Page) About {
	about := About{Mode: v.web.mode(), By: v.begin().reads}
	for _, p := range pages {
		page := AboutPage{URL: p.URL, FinalURL: p.FinalURL, Status: p.Status, Type: p.Type, Bytes: p.Bytes, Digest: p.Digest, Extractor: p.Extractor}
		if p.FinalURL == p.URL {
			page.FinalURL = ""
		}
		if p.Error != nil {
			page.Error = p.Error.Class
		}
		about.Pages = append(about.Pages, page)
	}
	return about
}
