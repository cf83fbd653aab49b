package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/tools/web/corpus"
	"trajgen/tools/web/fetch"
	"trajgen/tools/web/guard"
	"trajgen/tools/web/sites"
	"trajgen/tools/web/source"
	"trajgen/tools/web/tape"
)

// View is the web of one attempt at an episode. Its methods may be called from many goroutines.
type View struct {
	web   *Web
	begin func() play // at the first use: most of the episodes in flight may never need it

	*visited
}

// visited are the sites of a task, and what was done there: by an episode and its subagents.
type visited struct {
	sites *sites.Set // nil for a task without sites
	why   error      // there are none

	mu      sync.Mutex // guards what follows
	changes int        // requests that may have changed a site's state
	history uint64     // which
}

// Join makes the view of a subagent one of the same sites as that among its parent's services.
func (v *View) Join(services []any) {
	for _, service := range services {
		if of, ok := service.(*View); ok {
			v.visited = of.visited
		}
	}
}

// play is how an attempt is recorded or played back; the zero value does neither.
type play struct {
	recording *tape.Recording
	played    *tape.Playing
}

// View is the web of an attempt, with the sites of its task, each in a state of its own.
func (w *Web) View(id string, attempt int, names ...string) *View {
	v := &View{web: w, visited: &visited{why: errors.New("the task names no sites")}}
	if len(names) > 0 {
		v.sites, v.why = sites.Open(names)
	}
	v.begin = sync.OnceValue(func() (p play) {
		switch {
		case w.recorder != nil:
			p.recording = w.recorder.Play(id, attempt)
		case w.tape != nil:
			p.played = w.tape.Play(id)
		}
		return p
	})
	return v
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

// Through records what live answers to a call, or answers from the recording without live; else it is live itself. Version names
// who is asked, and in which version of our requests: a replay looks answers up by it.
func (v *View) Through(call, version string, live http.RoundTripper) http.RoundTripper {
	switch p := v.begin(); {
	case p.recording != nil:
		return p.recording.Transport(call, version, live)
	case p.played != nil:
		return p.played.Transport(call, version)
	}
	return live
}

// File reads a file of any kind for a call, of at most limit bytes. An error is a *source.Error, unless ctx has ended.
func (v *View) File(ctx context.Context, call, url string, limit int64) (source.Page, []byte, error) {
	if v.web.Mode() == Corpus {
		return source.Page{URL: url}, nil, source.Errorf(source.Agent, source.NotInCorpus, "the corpus has no file %s, and this run has no live web", url)
	}
	return v.web.fetcher.With(v.Through(call, fetch.Version, v.web.live)).File(ctx, url, limit)
}

// Check judges a URL that an agent wrote, as guard.Guard does.
func (v *View) Check(url string) error {
	_, err := v.web.guard.Check(url)
	return err
}

// Follow judges a URL that a page leads to.
func (v *View) Follow(to string) error {
	_, err := v.web.guard.Follow(&url.URL{}, to)
	return err
}

// Mode is the mode of the run's web.
func (v *View) Mode() string { return v.web.Mode() }

// Call is the web of one tool call.
type Call struct {
	source.Reader
	source.Crawler
	id              string
	view            *View
	searcher        source.Searcher
	searches, reads string // who does, with the version
	cached          []*tape.Cached
}

// Call is the web of a tool call.
func (v *View) Call(id string) *Call {
	c := v.call(id)
	if v.sites != nil {
		w := v.web
		var rest http.RoundTripper = guard.Offline(source.Agent, source.NoHost)
		if w.Mode() != Corpus {
			rest = v.Through(id, fetch.Version, w.live)
		}
		own := w.sites.With(byHost{v, v.Sites(id), rest})
		both := withSites{v, own, c.Reader, c.Crawler}
		c.Reader, c.Crawler, c.reads = both, both, c.reads+", "+sitesVersion
	}
	return c
}

func (v *View) call(id string) *Call {
	w := v.web
	c := &Call{id: id, view: v}
	if w.Mode() == Corpus {
		documents := documents{w.corpus}
		c.searcher, c.Reader, c.Crawler = documents, documents, documents
		c.searches = "corpus " + w.corpus.Digest()
		c.reads = c.searches
		return c
	}
	through := func(version string, live http.RoundTripper) http.RoundTripper {
		if w.cache == nil {
			return v.Through(id, version, live)
		}
		t := w.cache.Transport(version, live)
		c.cached = append(c.cached, t)
		return t
	}
	// They were opened with the run, so that they open again.
	c.searches = w.search.Version()
	searcher, _ := w.service(w.search, through(c.searches, w.services))
	c.searcher = searcher.(source.Searcher)
	if w.extract.Name == "" {
		c.reads = fetch.Version
		own := w.fetcher.With(through(c.reads, w.live))
		c.Reader, c.Crawler = own, own
		return c
	}
	c.reads = w.extract.Version()
	reader, _ := w.service(w.extract, through(c.reads, w.services))
	c.Reader = reader.(source.Reader)
	if c.Crawler, _ = reader.(source.Crawler); c.Crawler == nil {
		c.Crawler = w.fetcher.With(through(fetch.Version, w.live))
	}
	return c
}

// Search finds pages.
func (c *Call) Search(ctx context.Context, q source.Query) ([]source.Result, error) {
	found, err := c.searcher.Search(ctx, q)
	if len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, err
}

// About is what answered a call, as its row has it.
type About struct {
	Mode    string      `json:"mode"`
	By      string      `json:"by"`
	Cached  bool        `json:"cached,omitempty"` // the cache answered, and nothing was asked of the web
	Loose   int         `json:"loose,omitempty"`  // requests that a recording answered by one whose URL differs in what trackers read
	Pages   []AboutPage `json:"pages,omitempty"`
	Threats []string    `json:"threats,omitempty"` // what of the text that the model sees looks like an attack; it sees it all the same

	Asked []episode.Inquiry `json:"asked,omitempty"` // of a model that summarised pages
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
	Text      string `json:"text_sha256,omitempty"` // of a page that was summarised: its whole text
	Error     string `json:"error_class,omitempty"`
}

// Searched is what answered a search.
func (c *Call) Searched() About { return c.about(c.searches) }

// Have is what answered from the corpus.
func (v *View) Have() About { return About{Mode: Corpus, By: "corpus " + v.web.corpus.Digest()} }

// about is what answered the call.
func (c *Call) about(by string) About {
	about := About{Mode: c.view.Mode(), By: by}
	if played := c.view.begin().played; played != nil {
		about.Loose = played.Loose(c.id)
	}
	asked, hits := 0, 0
	for _, t := range c.cached {
		a, h := t.Stats()
		asked, hits = asked+a, hits+h
	}
	about.Cached = asked > 0 && hits == asked
	return about
}

// Came is where pages came from.
func (c *Call) Came(pages []source.Page) About {
	about := c.about(c.reads)
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
