// Package web is what the web tools of a run answer from: the live web, a recording of it, or a corpus.
//
// All requests of an episode go through an http.RoundTripper of its own: guarded, recorded, or answered from a recording without
// any way to the network. All episodes share a Web; each has a View.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"trajgen/tools/web/corpus"
	"trajgen/tools/web/corpus/world"
	"trajgen/tools/web/extract"
	"trajgen/tools/web/fetch"
	"trajgen/tools/web/guard"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
	"trajgen/tools/web/tape"
)

// Config says what is opened.
type Config struct {
	Settings Settings
	KeyEnvs  []string // variables of further keys, which a recording must not have
	Getenv   func(string) string
	Now      func() time.Time
	// PDF makes the text of a PDF file; nil where that is not possible.
	PDF func(ctx context.Context, body []byte) (string, error)
}

// Web is what the web tools of a run answer from.
type Web struct {
	config   Config
	guard    *guard.Guard
	fetcher  *fetch.Fetcher
	sites    *fetch.Fetcher   // for the sites of tasks
	live     *guard.Transport // for pages
	services *http.Transport  // for providers, whose addresses the operator chose
	search   provider.Config  // of web_search; without a name in mode corpus
	extract  provider.Config  // of web_extract and web_crawl; without a name for our own fetch
	versions string           // of what searches and reads, for the fingerprint
	corpus   corpus.Corpus    // nil without
	recorder *tape.Recorder   // nil but in mode record
	tape     *tape.Tape       // nil but in mode replay
	cache    *tape.Cache      // nil without
	closers  []func() error
}

// Open opens what the settings name. Nothing is asked of a provider.
func Open(ctx context.Context, c Config) (_ *Web, err error) {
	g, err := guard.New(guard.Config{Private: c.Settings.AllowPrivate, Blocked: c.Settings.Block, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	w := &Web{config: c, guard: g, live: g.Transport()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.services = http.DefaultTransport.(*http.Transport).Clone()
	w.closers = append(w.closers, func() error {
		w.live.CloseIdleConnections()
		w.services.CloseIdleConnections()
		return nil
	})
	extractor := extract.New(extract.Config{PDF: c.PDF})
	fetching := fetch.Config{
		Transport: guard.Offline(source.Operator, source.Unavailable), Guard: g, Now: c.Now, Recorded: w.Mode() == Replay, InOrder: w.Mode() == Record || w.Mode() == Replay,
		Extract: func(ctx context.Context, page source.Page, body []byte, header http.Header) source.Page {
			return extractor.Page(ctx, page, body, header.Get("Content-Type"))
		},
	}
	w.fetcher = fetch.New(fetching)
	fetching.Recorded, fetching.InOrder = true, true // a site of ours needs no politeness
	w.sites = fetch.New(fetching)
	if w.Mode() == Replay {
		dir := RecordingDir(c.Settings.Recording)
		if w.tape, err = tape.Open(dir, tape.ReplayOptions{Loose: c.Settings.Loose, Secrets: w.keys()}); err != nil {
			return nil, err
		}
		w.closers = append(w.closers, w.tape.Close)
		if err := w.tape.Damage(); err != nil {
			return nil, err
		}
	}
	if dir := c.Settings.Cache; dir != "" {
		if w.cache, err = tape.OpenCache(dir, cmp.Or(c.Settings.CacheTTL, 24*time.Hour), tape.Options{Secrets: w.keys(), Now: c.Now}); err != nil {
			return nil, err
		}
	}
	if err := w.openCorpus(ctx); err != nil {
		return nil, err
	}
	if w.Mode() == Corpus {
		return w, nil
	}
	return w, w.openProviders()
}

// Mode is the mode of the run's web.
func (w *Web) Mode() string { return cmp.Or(w.config.Settings.Mode, Live) }

// RecordingDir is where a run directory has the recording of its web.
func RecordingDir(run string) string { return filepath.Join(run, "web") }

// VerifyRecording reads the recording in a run directory, where there is one, and says what is damaged.
func VerifyRecording(run string) error {
	dir := RecordingDir(run)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	recording, err := tape.Open(dir, tape.ReplayOptions{})
	if err != nil {
		return err
	}
	return errors.Join(recording.Verify(), recording.Close())
}

// MergeRecordings makes one recording in a run directory of those in others, if any has one.
func MergeRecordings(run string, others []string, now func() time.Time) error {
	var from []string
	for _, other := range others {
		if _, err := os.Stat(RecordingDir(other)); err == nil {
			from = append(from, RecordingDir(other))
		}
	}
	if len(from) == 0 {
		return nil
	}
	return tape.Merge(RecordingDir(run), from, tape.Options{Now: now})
}

// Record keeps what comes from the web in a run directory, if that is the mode. It is called before the first View. resumed goes on
// with the recording there.
func (w *Web) Record(run string, resumed bool) (err error) {
	if w.Mode() != Record {
		return nil
	}
	if w.recorder, err = tape.Create(RecordingDir(run), tape.Options{More: resumed, Secrets: w.keys(), Now: w.config.Now}); err == nil {
		w.closers = append(w.closers, w.recorder.Close)
	}
	return err
}

// Sync returns when everything that was recorded is on the disk.
func (w *Web) Sync() error {
	if w.recorder == nil {
		return nil
	}
	return w.recorder.Sync()
}

// keys are the values of the providers' keys.
func (w *Web) keys() []string {
	var all []string
	for _, name := range append(w.config.Settings.Variables(), w.config.KeyEnvs...) {
		if value := w.config.Getenv(name); value != "" {
			all = append(all, value)
		}
	}
	return all
}

// openProviders chooses who searches and reads, and says what is wrong with their settings.
func (w *Web) openProviders() error {
	s, getenv := w.config.Settings, w.config.Getenv
	picked, found := provider.Pick(getenv)
	if !found {
		picked.Name = "duckduckgo"
	}
	w.search = s.config(cmp.Or(s.Search, picked.Name), getenv)
	searcher, err := w.service(w.search, w.services)
	if err != nil {
		return err
	}
	if _, ok := searcher.(source.Searcher); !ok {
		return fmt.Errorf("web: %s does not search; name another provider for search", w.search.Name)
	}
	w.versions = w.search.Version() + ", " + fetch.Version + ", " + extract.Version
	if s.Extract == "" {
		return nil
	}
	w.extract = s.config(s.Extract, getenv)
	reader, err := w.service(w.extract, w.services)
	if err != nil {
		return err
	}
	if _, ok := reader.(source.Reader); !ok {
		return fmt.Errorf("web: %s does not read pages; name another provider for extract, or none", w.extract.Name)
	}
	w.versions = w.search.Version() + ", " + w.extract.Version()
	return nil
}

// service opens a provider over a transport.
func (w *Web) service(c provider.Config, transport http.RoundTripper) (provider.Provider, error) {
	c.Transport, c.Now, c.Hasty = transport, w.config.Now, w.Mode() == Replay
	return provider.Open(c)
}

// openCorpus opens the documents that the settings name.
func (w *Web) openCorpus(ctx context.Context) error {
	name := w.config.Settings.Corpus
	switch {
	case name == "":
		return nil
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		client, err := corpus.Dial(ctx, name, w.services, w.config.Now)
		if err != nil {
			return err
		}
		w.corpus = client
		return nil
	case name == Bundled:
		path, remove, err := bundled(ctx)
		if err != nil {
			return err
		}
		defer remove()
		name = path
	}
	index, err := corpus.Open(name)
	if err != nil {
		return err
	}
	w.corpus = index
	w.closers = append(w.closers, index.Close)
	return nil
}

// bundled makes the index of the corpus that comes along. It may be removed as soon as it is open.
func bundled(ctx context.Context) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "trajgen-corpus-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "bundled")
	documents := func(yield func(corpus.Document, error) bool) {
		for d, err := range world.Documents() {
			if !yield(corpus.Document{ID: d.ID, Title: d.Title, URL: d.URL, Text: d.Text}, err) {
				return
			}
		}
	}
	if _, err := corpus.Build(ctx, path, documents, corpus.Options{}); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// Fingerprint says what of the web decides how episodes go: "" for the live web with nothing said about it.
func (w *Web) Fingerprint() string {
	s := w.config.Settings
	if s.Mode == "" && s.Corpus == "" && s.Search == "" && s.Extract == "" && s.Summary.Model == "" && len(s.AllowPrivate)+len(s.Block) == 0 {
		return ""
	}
	parts := []string{w.Mode()}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("by", w.versions)
	if w.tape != nil {
		add("recording", w.tape.Digest())
		add("max_misses", fmt.Sprint(s.MaxMisses))
		if s.Loose {
			parts = append(parts, "loose")
		}
	}
	if w.corpus != nil {
		add("corpus", w.corpus.Digest())
		if index, ok := w.corpus.(*corpus.Index); ok {
			add("analyser", index.Info().Analyser)
		}
	}
	if s.Summary.Model != "" {
		add("summary by", fmt.Sprintf("%s in %d characters", s.Summary.Model, s.Summary.MaxChars))
	}
	add("allow_private", strings.Join(s.AllowPrivate, ","))
	add("block", strings.Join(s.Block, ","))
	return strings.Join(parts, "; ")
}

// Close closes what is open.
func (w *Web) Close() error {
	var errs []error
	for _, closer := range w.closers {
		errs = append(errs, closer())
	}
	w.closers = nil
	return errors.Join(errs...)
}
