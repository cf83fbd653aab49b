// Package sessions is the full-text index over the finished episodes of a run, for the tool session_search.
//
// It is built from the journal and can be rebuilt from it at any time. The result of a search depends on which episodes have
// finished by then, so two runs of one experiment may differ in it; the trace of a call has the result.
package sessions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"trajgen/pipeline/episode"
)

// Journal has the finished episodes of a run.
type Journal interface {
	// Finished yields the latest attempt of each episode that ended by the agent's doing.
	Finished() iter.Seq2[string, int]
	// Episode reads one of them.
	Episode(id string) (*episode.Episode, error)
	Close() error
}

// Config says where the index is and where its episodes come from.
type Config struct {
	Path string // of the database
	// Journal opens the finished episodes. It is called when the index is first needed.
	Journal func() (Journal, error)
	Logger  *slog.Logger // nil logs nothing
}

// Store is the index of one run. It makes the database at the first search, so that a run without searches pays nothing. It is
// safe for concurrent use.
type Store struct {
	cfg Config

	// opening holds one token, which a goroutine takes while it opens the database and brings it up to date: it is a channel so
	// that a waiting call can be cancelled. The token guards caught, failed and closed.
	opening chan struct{}
	caught  bool
	failed  error // why the index could not be built
	closed  bool

	mu    sync.Mutex // guards index
	index *index     // nil until it is needed
}

// New makes a store that opens nothing yet.
func New(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{cfg: cfg, opening: make(chan struct{}, 1)}
}

// Add takes an episode that is in the journal. It returns at once unless the index is far behind; later searches report failed
// writes.
func (s *Store) Add(ep *episode.Episode) {
	if index := s.current(); index != nil {
		index.add(ep)
	}
}

// Close writes what was added and closes the database.
func (s *Store) Close() error {
	s.opening <- struct{}{}
	defer func() { <-s.opening }()
	index := s.current()
	if s.closed = true; index == nil {
		return nil
	}
	s.set(nil)
	return index.close()
}

func (s *Store) current() *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index
}

func (s *Store) set(index *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = index
}

// ErrClosed is returned once the run has ended.
var ErrClosed = errors.New("the index of sessions is closed")

// ready returns the index, up to date with all earlier calls of Add.
func (s *Store) ready(ctx context.Context) (*index, error) {
	made, err := s.caughtUp(ctx)
	if err != nil {
		return made, err
	}
	return made, made.flush(ctx)
}

func (s *Store) caughtUp(ctx context.Context) (*index, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	made, err := s.open(ctx)
	if err != nil || s.caught {
		return made, err
	}
	// Episodes that are added from here on are indexed, even if the journal was read before they finished.
	if err := s.catchUp(ctx, made); err != nil {
		return nil, fmt.Errorf("bring %s up to date with the journal: %w", s.cfg.Path, err)
	}
	s.caught = true
	return made, nil
}

func (s *Store) open(ctx context.Context) (*index, error) {
	made := s.current()
	switch {
	case s.closed:
		return nil, ErrClosed
	case made != nil || s.failed != nil:
		return made, s.failed
	}
	made, err := openIndex(ctx, s.cfg.Path, s.cfg.Logger)
	if err != nil && ctx.Err() == nil { // the next call may have more time
		s.failed = err
		s.cfg.Logger.Error("sessions cannot be searched", "path", s.cfg.Path, "error", err)
	}
	if err != nil {
		return nil, err
	}
	s.set(made)
	return made, nil
}

func (s *Store) catchUp(ctx context.Context, made *index) error {
	have, err := made.have(ctx)
	if err != nil {
		return err
	}
	journal, err := s.cfg.Journal()
	if err != nil {
		return err
	}
	defer journal.Close()
	for id, attempt := range journal.Finished() {
		if known, ok := have[id]; ok && known >= attempt {
			delete(have, id)
			continue
		}
		delete(have, id)
		ep, err := journal.Episode(id)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		made.add(ep)
	}
	// An episode that is not in the journal never finished.
	for id := range have {
		if err := made.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// rows runs a query and scans each row.
func rows(ctx context.Context, db *sql.DB, query string, args []any, scan func(*sql.Rows) error) error {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := scan(found); err != nil {
			return err
		}
	}
	return found.Err()
}
