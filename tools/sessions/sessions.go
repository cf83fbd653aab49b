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

	// opening holds one token, which a goroutine takes while it opens the database, brings it up to date or closes it: it is a
	// channel so that a waiting call can be cancelled. The token guards caught, failed and closed.
	opening chan struct{}
	caught  bool
	failed  error // why the index could not be built
	closed  bool

	mu    sync.RWMutex // guards index; read-locked while an episode is added, so that Close waits for it
	index *index       // nil until it is needed
}

// New makes a store that opens nothing yet.
func New(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{cfg: cfg, opening: make(chan struct{}, 1)}
}

// Add indexes an episode that is in the journal; later searches report an error of that. An episode that did not end by the
// agent's doing may be played again, and is left out.
func (s *Store) Add(ep *episode.Episode) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.index == nil || !ep.Outcome.AgentsDoing() {
		return
	}
	if err := s.index.add(ep); err != nil {
		s.cfg.Logger.Error("sessions were not indexed", "error", err)
	}
}

// Close writes what was added and closes the database.
func (s *Store) Close() error {
	s.opening <- struct{}{}
	defer func() { <-s.opening }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.index == nil {
		return nil
	}
	err := errors.Join(s.index.flush(), s.index.close())
	s.index = nil
	return err
}

// ErrClosed is returned once the run has ended.
var ErrClosed = errors.New("the index of sessions is closed")

// ready returns the index with all episodes of the journal, and of earlier calls of Add.
func (s *Store) ready(ctx context.Context) (*index, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.closed {
		return nil, ErrClosed
	}
	if s.failed != nil {
		return nil, s.failed
	}
	if s.index == nil {
		made, err := openIndex(ctx, s.cfg.Path, s.cfg.Logger)
		if err != nil && ctx.Err() == nil { // the next call may have more time
			s.failed = err
			s.cfg.Logger.Error("sessions cannot be searched", "path", s.cfg.Path, "error", err)
		}
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.index = made
		s.mu.Unlock()
	}
	// Episodes that are added from here on are indexed, even if the journal was read before they finished.
	if !s.caught {
		if err := s.catchUp(ctx); err != nil {
			return nil, fmt.Errorf("bring %s up to date with the journal: %w", s.cfg.Path, err)
		}
		s.caught = true
	}
	return s.index, s.index.flush()
}

// catchUp indexes what the journal has and the database lacks, and removes what never finished.
func (s *Store) catchUp(ctx context.Context) error {
	have, err := s.index.have(ctx)
	if err != nil {
		return err
	}
	journal, err := s.cfg.Journal()
	if err != nil {
		return err
	}
	defer journal.Close()
	for id, attempt := range journal.Finished() {
		known, ok := have[id]
		delete(have, id)
		if ok && known >= attempt {
			continue
		}
		ep, err := journal.Episode(id)
		if err == nil {
			err = s.index.add(ep)
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return s.index.change(func(tx *sql.Tx) error {
		for id := range have {
			if err := remove(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
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
