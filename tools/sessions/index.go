package sessions

import (
	"cmp"
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
	reader, writer *sql.DB

	mu      sync.Mutex // guards the rest
	waiting []*episode.Episode
	failed  error // why an added episode cannot be found
}

// maxBatch bounds a transaction, and the episodes in memory.
const maxBatch = 64

// openIndex opens the database in path, and rebuilds it when it is not ours: all its content is in the journal.
func openIndex(ctx context.Context, path string, logger *slog.Logger) (*index, error) {
	x, err := tryIndex(ctx, path)
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
	return tryIndex(ctx, path)
}

func tryIndex(ctx context.Context, path string) (_ *index, err error) {
	x := &index{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the index of sessions %s: %w", path, errors.Join(err, x.close()))
		}
	}()
	if x.writer, err = database(path, "_txlock=immediate", "_pragma=journal_mode(wal)"); err != nil {
		return nil, err
	}
	x.writer.SetMaxOpenConns(1)
	if err := prepare(ctx, x.writer); err != nil {
		return nil, err
	}
	if x.reader, err = database(path, "_pragma=query_only(1)"); err != nil {
		return nil, err
	}
	x.reader.SetMaxOpenConns(runtime.GOMAXPROCS(0))
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
	_, err := db.ExecContext(ctx, fmt.Sprintf("BEGIN; %s PRAGMA user_version = %d; COMMIT", schema, version))
	return err
}

// add indexes an episode: together with others, which is several times faster.
func (x *index) add(ep *episode.Episode) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting = append(x.waiting, ep); len(x.waiting) < maxBatch {
		return nil
	}
	return x.write()
}

// flush writes what is waiting, and returns the first error of writing.
func (x *index) flush() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return cmp.Or(x.failed, x.write())
}

// write writes the waiting episodes in place of their earlier attempts.
func (x *index) write() error {
	if len(x.waiting) == 0 {
		return nil
	}
	err := x.change(func(tx *sql.Tx) error {
		for _, ep := range x.waiting {
			if err := remove(tx, ep.ID); err != nil {
				return err
			}
			if err := insert(tx, ep); err != nil {
				return fmt.Errorf("index episode %s: %w", ep.ID, err)
			}
		}
		return nil
	})
	x.waiting, x.failed = nil, cmp.Or(x.failed, err)
	return err
}

// change runs f in a transaction. It belongs to the run and not to a call, so it is not cancelled.
func (x *index) change(f func(tx *sql.Tx) error) error {
	tx, err := x.writer.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
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

// have returns the attempts in the database.
func (x *index) have(ctx context.Context) (map[string]int, error) {
	have := map[string]int{}
	err := rows(ctx, x.reader, `SELECT id, attempt FROM sessions`, nil, func(r *sql.Rows) error {
		var id string
		var attempt int
		err := r.Scan(&id, &attempt)
		have[id] = attempt
		return err
	})
	return have, err
}

func (x *index) close() error {
	var errs []error
	for _, db := range []*sql.DB{x.reader, x.writer} { // closing the last one merges the log into the file
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
