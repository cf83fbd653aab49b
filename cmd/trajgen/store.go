package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"trajgen/outputs/export"
	"trajgen/outputs/journal"
	"trajgen/outputs/report"
	"trajgen/outputs/turns"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/model/tape"
	"trajgen/tools/sessions"
)

// runStore is a run directory in use: it is what the pipeline remembers with.
type runStore struct {
	dir      string
	manifest manifest
	journal  *journal.Journal
	earlier  *journal.Reader // opened by the first attempt that follows another; nil before
	tape     *tape.Recorder  // nil when none is recorded
	sessions *sessions.Store
	ledger   *budget.Ledger // nil without a budget
	turns    *turns.Log     // nil without durable_turns
	log      *os.File
	logger   *slog.Logger
}

// openRun makes the run directory, or goes on with it when it holds the same experiment. The journal's lock is taken
// first: of two runners on one directory, the second changes nothing.
func openRun(ctx context.Context, dir string, exp *experiment, resume bool, logs *lateWriter) (_ *runStore, err error) {
	experiment := exp.file.experiment(exp.parts)
	s := &runStore{dir: dir, logger: exp.logger, manifest: manifest{
		Fingerprint: fingerprint(experiment), Experiment: experiment, Version: versionText(), RunFile: exp.file,
		Tasks: exp.tasks, Samples: exp.file.Samples, Guarantees: exp.backend.Guarantees(), Card: exp.source.About().Card,
	}}
	defer func() {
		if err != nil {
			err = errors.Join(usage(err), s.close())
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory %s: %w", dir, err)
	}
	if s.journal, err = journal.Open(journalDir(dir), journal.Options{SegmentBytes: int64(exp.file.JournalSegment), Logger: exp.logger}); err != nil {
		return nil, err
	}
	if err := s.claim(resume); err != nil {
		return nil, err
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	if err := s.manifest.write(dir); err != nil {
		return nil, err
	}
	if s.log, err = os.OpenFile(filepath.Join(dir, "log.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := s.openTurns(exp); err != nil {
		return nil, err
	}
	s.ledger = exp.ledger
	if err := exp.attachBudget(ctx, dir); err != nil {
		return nil, err
	}
	if err := exp.beginTape(s.manifest.Fingerprint); err != nil {
		return nil, err
	}
	s.tape = exp.recorder
	logs.open(s.log)
	s.sessions = newSessions(dir, exp.logger)
	return s, nil
}

// claim looks at the directory again, now that nobody else can change it.
func (s *runStore) claim(resume bool) error {
	if !resume {
		if s.journal.Len() > 0 {
			return fmt.Errorf("%s holds the episodes of another run: --resume goes on with a run, another --out starts one", s.dir)
		}
		return fresh(s.dir)
	}
	earlier, err := readManifest(s.dir)
	if err != nil {
		return err
	}
	if lines := difference(earlier.Experiment, s.manifest.Experiment); len(lines) > 0 {
		return fmt.Errorf("%s holds another experiment; change it back or start a new run with another --out:\n  %s", s.dir, strings.Join(lines, "\n  "))
	}
	return nil
}

func (s *runStore) close() error {
	var errs []error
	if s.sessions != nil {
		errs = append(errs, s.sessions.Close())
	}
	if s.turns != nil {
		errs = append(errs, s.turns.Close())
	}
	if s.ledger != nil { // while the journal's lock still keeps others away
		errs = append(errs, s.ledger.Close())
	}
	if s.earlier != nil {
		errs = append(errs, s.earlier.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// Last and Append make the store a pipeline.Journal.
func (s *runStore) Last(id string) (pipeline.Record, bool) {
	entry, ok := s.journal.Last(id)
	record := pipeline.Record{Outcome: entry.Outcome, Attempt: entry.Attempt, Pending: entry.Pending}
	if entry.Pending || ok && s.manifest.RunFile.RetryErrors && !entry.Outcome.AgentsDoing() {
		record.Earlier = s.attempts(id)
	}
	return record, ok
}

// attempts are those of an episode that the run found in the journal. Without them it is played again all the same. Who
// plans calls it, from one goroutine.
func (s *runStore) attempts(id string) episode.Attempts {
	ep, err := s.before(id)
	if err != nil {
		s.logger.Warn("what an episode's attempts died of is not known; it is played again", "id", id, "error", err.Error())
		return nil
	}
	return append(ep.Earlier, ep.Ended())
}

func (s *runStore) before(id string) (_ *episode.Episode, err error) {
	if s.earlier == nil {
		if s.earlier, err = journal.OpenReader(journalDir(s.dir)); err != nil {
			s.earlier = nil
			return nil, err
		}
	}
	return s.earlier.Last(id)
}

func (s *runStore) Append(ctx context.Context, ep *episode.Episode) error {
	if s.tape != nil { // what the journal has is on the tape
		s.tape.Forget(ep.ID, ep.Attempt)
		if err := s.tape.Sync(); err != nil {
			return err
		}
	}
	if err := s.journal.Append(ctx, ep); err != nil {
		return err
	}
	if s.turns != nil {
		if err := s.turns.Forget(ep.ID, ep.Attempt); err != nil {
			return err
		}
	}
	if !ep.Pending {
		s.sessions.Add(ep)
	}
	return nil
}

// finish writes everything that is made from the journal.
func (s *runStore) finish(ctx context.Context, summary pipeline.Summary, wall time.Duration) (*report.Report, error) {
	defer spare(sparing)()
	// What was played is exported whatever ended the run.
	ctx = context.WithoutCancel(ctx)
	reader, err := journal.OpenReader(journalDir(s.dir))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if s.ledger != nil { // nothing is asked any more
		if err := s.ledger.Close(); err != nil {
			return nil, err
		}
	}
	builder, err := beginReport(s.dir, s.manifest, wall, summary.Finished)
	if err != nil {
		return nil, err
	}
	report, err := writeFiles(ctx, reader, builder, s.dir)
	if err != nil {
		return nil, err
	}
	return report, writeReport(s.dir, report)
}

// writeFiles writes the Parquet files and adds up the report in one reading of the journal. The digests of earlier files
// go first: they must not be held against those that take their place.
func writeFiles(ctx context.Context, reader *journal.Reader, builder *report.Builder, dir string) (*report.Report, error) {
	if err := os.Remove(filepath.Join(dir, sumsName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	episodes := export.Seen(export.Ahead(reader, runtime.GOMAXPROCS(0)), builder.Add)
	if _, err := export.RunFiles(ctx, episodes, dir); err != nil {
		return nil, err
	}
	return builder.Finish(), nil
}

// lateWriter holds log lines until the run directory is there.
type lateWriter struct {
	mu   sync.Mutex // guards what follows
	w    io.Writer
	held []byte
}

func (l *lateWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		l.held = append(l.held, p...)
		return len(p), nil
	}
	return l.w.Write(p)
}

func (l *lateWriter) open(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
	_, _ = w.Write(l.held)
	l.held = nil
}
