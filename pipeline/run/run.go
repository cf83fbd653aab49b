// Package run plays a run file into a run directory, and opens everything that this needs.
//
// A File is decoded and validated; Open opens all that it names and its run directory, Play plays the missing episodes, and
// Finish writes the files that are made from the journal. A Mistake is an error from before the first episode.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"trajgen/outputs/journal"
	"trajgen/outputs/media"
	"trajgen/outputs/report"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/budget"
	"trajgen/tools/sessions"
)

// Run is an open run directory, and the pipeline's Journal.
type Run struct {
	Exp      *Experiment
	dir      string
	Manifest Manifest
	journal  *journal.Journal
	earlier  *journal.Reader // opened by the first attempt that follows another; nil before
	sessions *sessions.Store
	ledger   *budget.Ledger // nil without a budget
	proofs   begunProofs
	log      *os.File
	logger   *slog.Logger
}

// Open opens a run file and its run directory, which is new or holds the same experiment. w gets the warnings. before sees the
// experiment before the directory does, and can refuse it.
func Open(ctx context.Context, file File, resume bool, w io.Writer, before func(*Experiment) error) (*Run, error) {
	dir := file.OutDir()
	if !resume {
		if err := fresh(dir); err != nil {
			return nil, AsMistake(err)
		}
	}
	logs := &LateWriter{}
	file.resumed, file.Scratch = resume, dir
	exp, err := file.Open(ctx, w, slog.New(slog.NewJSONHandler(logs, nil)))
	if err != nil {
		return nil, err
	}
	var s *Run
	if err = before(exp); err == nil {
		s, err = exp.Keep(ctx, dir, resume, logs)
	}
	if err != nil {
		return nil, errors.Join(err, exp.Close())
	}
	return s, nil
}

// Keep opens the experiment's run directory. It takes the journal's lock first, so that a second runner on the same directory
// changes nothing.
func (e *Experiment) Keep(ctx context.Context, dir string, resume bool, logs *LateWriter) (_ *Run, err error) {
	parts := e.File.experiment(e.parts)
	s := &Run{Exp: e, dir: dir, logger: e.Logger, Manifest: Manifest{
		Fingerprint: Fingerprint(parts), Experiment: parts, Version: Version(), RunFile: e.File,
		Tasks: e.Tasks, Samples: e.File.Samples, Guarantees: e.Backend.Guarantees(), Card: e.Source.About().Card,
	}}
	if e.File.Stepped {
		s.Manifest.Samples = 0 // as of a merged run, it is not known how many there are to be
	}
	defer func() {
		if err != nil {
			err = errors.Join(AsMistake(err), s.CloseFiles())
		}
	}()
	if clean := e.File.Faults.Clean; clean != "" {
		s.Manifest.Tasks = 0 // it plays no episodes of tasks, but twins
		if err := sameButFaults(clean, parts); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make run directory %s: %w", dir, err)
	}
	if s.journal, err = journal.Open(JournalDir(dir), journal.Options{SegmentBytes: int64(e.File.Play.JournalSegment), Logger: e.Logger}); err != nil {
		return nil, err
	}
	if err := s.claim(resume); err != nil {
		return nil, err
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	if err := s.openProofs(ctx, resume); err != nil {
		return nil, err
	}
	if err := s.Manifest.Write(dir); err != nil {
		return nil, err
	}
	if s.log, err = os.OpenFile(filepath.Join(dir, "log.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := s.openTurns(); err != nil {
		return nil, err
	}
	s.ledger = e.ledger
	if s.ledger != nil { // it goes on with the spending of the directory; without a ledger there, with that of its episodes
		earlier := func() (budget.Amount, error) { return e.journaled(ctx, dir) }
		if err := s.ledger.Attach(filepath.Join(dir, spendFile), earlier); err != nil {
			return nil, err
		}
	}
	e.images.Move(media.Dir(dir))
	if err := errors.Join(e.web.Record(dir, resume), e.recordTwin(dir, resume)); err != nil {
		return nil, err
	}
	if err := e.beginTape(s.Manifest.Fingerprint); err != nil {
		return nil, err
	}
	logs.open(s.log)
	s.sessions = newSessions(dir, e.Logger)
	return s, nil
}

// claim checks the directory again, now that the lock keeps other runners from changing it.
func (s *Run) claim(resume bool) error {
	if !resume {
		if s.journal.Len() > 0 {
			return fmt.Errorf("%s holds the episodes of another run: --resume goes on with a run, another --out starts one", s.dir)
		}
		return fresh(s.dir)
	}
	earlier, err := ReadManifest(s.dir)
	if err != nil {
		return err
	}
	was := earlier.RunFile.experiment(experimentParts{}) // an older version may have kept less of it
	maps.Copy(was, earlier.Experiment)
	if lines := Difference(was, s.Manifest.Experiment); len(lines) > 0 {
		return fmt.Errorf("%s holds another experiment; change it back or start a new run with another --out:\n  %s", s.dir, strings.Join(lines, "\n  "))
	}
	return nil
}

// Close closes the run directory and everything that the run file had opened.
func (s *Run) Close() error { return errors.Join(s.CloseFiles(), s.Exp.Close()) }

// CloseFiles closes only the run directory.
func (s *Run) CloseFiles() error {
	errs := []error{s.proofs.close()}
	if s.sessions != nil {
		errs = append(errs, s.sessions.Close())
	}
	if turns := s.Exp.recorder.Turns; turns != nil {
		errs = append(errs, turns.Close())
	}
	if s.ledger != nil { // while this process still holds the journal's lock
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
func (s *Run) Last(id string) (pipeline.Record, bool) {
	entry, ok := s.journal.Last(id)
	record := pipeline.Record{Outcome: entry.Outcome, Attempt: entry.Attempt, Pending: entry.Pending}
	if entry.Pending || ok && s.Manifest.RunFile.Play.RetryErrors && !entry.Outcome.AgentsDoing() {
		record.Earlier = s.attempts(id)
	}
	return record, ok
}

// attempts are the attempts of an episode that the run found in the journal. If they cannot be read, the episode is played again
// all the same. The planner calls it, from one goroutine.
func (s *Run) attempts(id string) episode.Attempts {
	ep, err := s.before(id)
	if err != nil {
		s.logger.Warn("what an episode's attempts died of is not known; it is played again", "id", id, "error", err.Error())
		return nil
	}
	return append(ep.Earlier, ep.Ended())
}

func (s *Run) before(id string) (_ *episode.Episode, err error) {
	if s.earlier == nil {
		if s.earlier, err = journal.OpenReader(JournalDir(s.dir)); err != nil {
			s.earlier = nil
			return nil, err
		}
	}
	return s.earlier.Last(id)
}

// Append keeps an episode.
func (s *Run) Append(ctx context.Context, ep *episode.Episode) error {
	if err := errors.Join(s.Exp.recorder.Sync(), s.Exp.web.Sync(), s.Exp.twin.Sync()); err != nil { // tapes must have every journaled episode
		return err
	}
	known, err := s.proofs.of(ep.Row)
	if err != nil {
		return err
	}
	for each := range ep.Tree() {
		each.Proof = known
	}
	if err := s.reacted(ep); err != nil {
		return err
	}
	if err := s.journal.Append(ctx, ep); err != nil {
		return err
	}
	if err := s.Exp.recorder.Forget(ep.ID, ep.Attempt); err != nil {
		return err
	}
	if !ep.Pending && ep.Twin == nil {
		s.sessions.Add(ep)
	}
	return nil
}

// Finish writes all files that are made from the journal.
func (s *Run) Finish(ctx context.Context, summary pipeline.Summary, wall time.Duration) (*report.Report, error) {
	defer SetGC(TightGC)()
	// The finished episodes are exported whatever ended the run.
	ctx = context.WithoutCancel(ctx)
	reader, err := journal.OpenReader(JournalDir(s.dir))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if s.ledger != nil { // no more requests follow
		if err := s.ledger.Close(); err != nil {
			return nil, err
		}
	}
	builder, err := BeginReport(s.dir, s.Manifest, wall, summary.Finished)
	if err != nil {
		return nil, err
	}
	report, err := WriteFiles(ctx, reader, builder, s.dir)
	if err != nil {
		return nil, err
	}
	return report, WriteReport(s.dir, report)
}

// LateWriter holds log lines until the run directory exists.
type LateWriter struct {
	mu   sync.Mutex // guards what follows
	w    io.Writer
	held []byte
}

func (l *LateWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		l.held = append(l.held, p...)
		return len(p), nil
	}
	return l.w.Write(p)
}

func (l *LateWriter) open(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
	_, _ = w.Write(l.held)
	l.held = nil
}
