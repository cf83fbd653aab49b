package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"trajgen/outputs"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
)

// runStore is a run directory in use: it is what the pipeline remembers with.
type runStore struct {
	dir      string
	manifest manifest
	journal  *outputs.Journal
	log      *os.File
}

// openRun makes the run directory, or goes on with it when it holds the same experiment.
func openRun(dir string, exp *experiment, resume bool, logs *lateWriter) (*runStore, error) {
	experiment := exp.file.experiment(exp.parts)
	s := &runStore{dir: dir, manifest: manifest{
		Fingerprint: fingerprint(experiment), Experiment: experiment, Version: versionText(), RunFile: exp.file,
		Tasks: exp.tasks, Samples: exp.file.Samples, Guarantees: exp.backend.Guarantees(),
	}}
	if resume {
		earlier, err := readManifest(dir)
		if err != nil {
			return nil, err
		}
		if lines := difference(earlier.Experiment, experiment); len(lines) > 0 {
			return nil, usage(fmt.Errorf("%s holds another experiment; change it back or start a new run with another --out:\n  %s", dir, strings.Join(lines, "\n  ")))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, usage(fmt.Errorf("make run directory %s: %w", dir, err))
	}
	if !resume {
		// Before the journal: a directory with one of the two can be resumed only if it is run.json.
		if err := s.manifest.write(dir); err != nil {
			return nil, usage(err)
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, usage(fmt.Errorf("open log: %w", err))
	}
	s.log = log
	journal, err := outputs.OpenJournal(journalDir(dir), outputs.JournalOptions{Logger: exp.logger})
	if err != nil {
		return nil, errors.Join(usage(err), log.Close())
	}
	s.journal = journal
	if resume {
		// Behind the journal, whose lock keeps a second runner out.
		if err := s.manifest.write(dir); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	logs.open(log)
	return s, nil
}

func (s *runStore) close() error { return errors.Join(s.journal.Close(), s.log.Close()) }

// Last and Append make the store a pipeline.Journal.
func (s *runStore) Last(id string) (pipeline.Record, bool) {
	entry, ok := s.journal.Has(id)
	return pipeline.Record{Outcome: entry.Outcome, Attempt: entry.Attempt}, ok
}

func (s *runStore) Append(ctx context.Context, ep *episode.Episode) error {
	return s.journal.Append(ctx, ep)
}

// finish writes everything that is made from the journal.
func (s *runStore) finish(ctx context.Context, summary pipeline.Summary, wall time.Duration) (*outputs.Report, error) {
	// What was played is exported whatever ended the run.
	ctx = context.WithoutCancel(ctx)
	reader, err := outputs.OpenReader(journalDir(s.dir))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if _, err := outputs.WriteDatasetFiles(ctx, reader, s.dir); err != nil {
		return nil, err
	}
	report, err := buildReport(ctx, reader, s.manifest, wall, summary.Finished)
	if err != nil {
		return nil, err
	}
	return report, writeReport(s.dir, report)
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
