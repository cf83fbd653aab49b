package sessions

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the database driver

	"trajgen/pipeline/episode"
	"trajgen/tools/internal/chars"
)

// schema is the database. Messages are numbered by their position in the episode; the word index has no text of its own. Change
// version with it: a database of another version is rebuilt.
const (
	version = 1
	schema  = `
CREATE TABLE sessions (
	n INTEGER PRIMARY KEY, -- in the order in which they came
	id TEXT NOT NULL UNIQUE, attempt INTEGER NOT NULL, task TEXT NOT NULL, prompt TEXT NOT NULL,
	title TEXT NOT NULL, opening TEXT NOT NULL, closing TEXT NOT NULL, messages INTEGER NOT NULL
);
CREATE TABLE messages (
	rowid INTEGER PRIMARY KEY, session INTEGER NOT NULL, at INTEGER NOT NULL,
	role TEXT NOT NULL, tool TEXT NOT NULL, content TEXT NOT NULL
);
CREATE INDEX messages_at ON messages (session, at);
CREATE VIRTUAL TABLE words USING fts5 (content, content='messages', content_rowid='rowid', tokenize='porter unicode61');
`
)

// index is an open database with one writer.
type index struct {
	read, write *sql.DB
	logger      *slog.Logger
	queue       chan item
	done        chan struct{} // closed when the writer has ended

	life   sync.RWMutex // read-locked while a goroutine sends to queue, so that close waits for it; guards closed
	closed bool

	mu     sync.Mutex // guards failed
	failed error      // why an added episode cannot be found
}

// item is an episode to write, or a request for a signal when all earlier items are written.
type item struct {
	ep      *episode.Episode
	written chan struct{}
}

// maxBatch bounds a transaction, and with the queue the episodes in memory.
const maxBatch = 64

// openIndex opens the database in path, and rebuilds it when it is not ours: all its content is in the journal.
func openIndex(ctx context.Context, path string, logger *slog.Logger) (*index, error) {
	x, err := tryIndex(ctx, path, logger)
	if err == nil || ctx.Err() != nil {
		return x, err
	}
	if _, missing := os.Stat(path); missing == nil {
		logger.Warn("made the index of sessions anew", "path", path, "reason", err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove the old index of sessions: %w", err)
		}
	}
	return tryIndex(ctx, path, logger)
}

func tryIndex(ctx context.Context, path string, logger *slog.Logger) (_ *index, err error) {
	x := &index{logger: logger, queue: make(chan item, maxBatch), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the index of sessions %s: %w", path, errors.Join(err, x.closeDatabases()))
		}
	}()
	if x.write, err = database(path, "_txlock=immediate", "_pragma=journal_mode(wal)"); err != nil {
		return nil, err
	}
	x.write.SetMaxOpenConns(1)
	if err := prepare(ctx, x.write); err != nil {
		return nil, err
	}
	if x.read, err = database(path, "_pragma=query_only(1)"); err != nil {
		return nil, err
	}
	x.read.SetMaxOpenConns(runtime.GOMAXPROCS(0))
	go x.writer()
	return x, nil
}

// database opens one pool. Pragmas are in the name, as they apply to a connection and not to a pool.
func database(path string, options ...string) (*sql.DB, error) {
	options = append(options, "_pragma=busy_timeout(10000)", "_pragma=synchronous(normal)", "_pragma=cache_size(-4000)")
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String()+"?"+strings.Join(options, "&"))
}

// prepare makes the tables of an empty database and refuses one with another schema.
func prepare(ctx context.Context, db *sql.DB) error {
	var found, tables int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	if found == version {
		var verdict string
		if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil || verdict != "ok" {
			return errors.Join(err, fmt.Errorf("it is damaged: %s", verdict))
		}
		return nil
	}
	if tables > 0 {
		return fmt.Errorf("it is of version %d, not %d", found, version)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// add queues an episode. An episode that did not end by the agent's doing may be played again, and is left out.
func (x *index) add(ep *episode.Episode) {
	if !ep.Outcome.AgentsDoing() {
		return
	}
	x.life.RLock()
	defer x.life.RUnlock()
	if !x.closed {
		x.queue <- item{ep: ep}
	}
}

// flush waits until all earlier episodes are written.
func (x *index) flush(ctx context.Context) error {
	written := make(chan struct{})
	if err := x.ask(ctx, item{written: written}); err != nil {
		return err
	}
	select {
	case <-written:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return x.failure()
}

func (x *index) ask(ctx context.Context, it item) error {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return ErrClosed
	}
	select {
	case x.queue <- it:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *index) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// writer writes queued episodes, as many in one transaction as are waiting.
func (x *index) writer() {
	defer close(x.done)
	for first := range x.queue {
		batch := []item{first}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case next, open := <-x.queue:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		if err := x.commit(batch); err != nil {
			x.logger.Error("sessions were not indexed", "error", err)
			x.mu.Lock()
			if x.failed == nil {
				x.failed = fmt.Errorf("index sessions: %w", err)
			}
			x.mu.Unlock()
		}
		for _, it := range batch {
			if it.written != nil {
				close(it.written)
			}
		}
	}
}

func (x *index) commit(batch []item) error {
	// The writer belongs to the run and not to a call: only close ends it.
	tx, err := x.write.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, it := range batch {
		if it.ep == nil {
			continue
		}
		if err := remove(tx, it.ep.ID); err != nil {
			return err
		}
		if err := insert(tx, it.ep); err != nil {
			return fmt.Errorf("episode %s: %w", it.ep.ID, err)
		}
	}
	return tx.Commit()
}

func insert(tx *sql.Tx, ep *episode.Episode) error {
	opening := firstUser(ep.Messages)
	result, err := tx.Exec(`INSERT INTO sessions (id, attempt, task, prompt, title, opening, closing, messages) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		ep.ID, ep.Attempt, baseTask(ep.Key.Task), promptSum(ep.Task.Prompt), title(opening), chars.First(opening, maxEdge, "…"), chars.First(ep.Answer, maxEdge, "…"), shownCount(ep.Messages))
	if err != nil {
		return err
	}
	session, err := result.LastInsertId()
	if err != nil {
		return err
	}
	for at, message := range ep.Messages {
		if !shown(message) {
			continue
		}
		content := spoken(message)
		result, err := tx.Exec(`INSERT INTO messages (session, at, role, tool, content) VALUES (?, ?, ?, ?, ?)`, session, at, message.Role, message.Name, content)
		if err != nil {
			return err
		}
		row, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO words (rowid, content) VALUES (?, ?)`, row, content); err != nil {
			return err
		}
	}
	return nil
}

func remove(tx *sql.Tx, id string) error {
	var session int64
	err := tx.QueryRow(`SELECT n FROM sessions WHERE id = ?`, id).Scan(&session)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, statement := range []string{
		`INSERT INTO words (words, rowid, content) SELECT 'delete', rowid, content FROM messages WHERE session = ?`,
		`DELETE FROM messages WHERE session = ?`, `DELETE FROM sessions WHERE n = ?`,
	} {
		if _, err := tx.Exec(statement, session); err != nil {
			return err
		}
	}
	return nil
}

// forget removes an episode.
func (x *index) forget(ctx context.Context, id string) error {
	tx, err := x.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := remove(tx, id); err != nil {
		return err
	}
	return tx.Commit()
}

// have returns the attempts in the database.
func (x *index) have(ctx context.Context) (map[string]int, error) {
	have := map[string]int{}
	err := rows(ctx, x.read, `SELECT id, attempt FROM sessions`, nil, func(r *sql.Rows) error {
		var id string
		var attempt int
		err := r.Scan(&id, &attempt)
		have[id] = attempt
		return err
	})
	return have, err
}

// close writes queued episodes and closes the database. It is called once.
func (x *index) close() error {
	x.life.Lock()
	x.closed = true
	close(x.queue)
	x.life.Unlock()
	<-x.done
	return x.closeDatabases()
}

func (x *index) closeDatabases() error {
	var errs []error
	for _, db := range []*sql.DB{x.read, x.write} { // closing the last one merges the log into the file
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// promptSum is equal for tasks with the same prompt, whatever their ids.
func promptSum(prompt []episode.Message) string {
	hash := sha256.New()
	for _, message := range prompt {
		fmt.Fprintf(hash, "%s %d:%s\n", message.Role, len(message.Content), message.Content)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
