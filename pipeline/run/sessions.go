package run

import (
	"iter"
	"log/slog"
	"path/filepath"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/tools/sessions"
)

// newSessions is the index over what a run has finished. It lies beside the journal and is made of it.
func newSessions(dir string, logger *slog.Logger) *sessions.Store {
	return sessions.New(sessions.Config{
		Path: filepath.Join(dir, "search.db"), Logger: logger,
		Journal: func() (sessions.Journal, error) {
			reader, err := journal.OpenReader(JournalDir(dir))
			if err != nil {
				return nil, err
			}
			return finished{reader}, nil
		},
	})
}

// finished is a journal as the index reads it.
type finished struct{ *journal.Reader }

func (f finished) Finished() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, entry := range f.Entries() {
			if entry.Outcome.AgentsDoing() && !yield(entry.ID, entry.Attempt) {
				return
			}
		}
	}
}

// Services are what a run has for the tools of an episode.
func (s *Run) Services(task *episode.Task, _ *episode.Episode) []any {
	return []any{&sessions.View{Store: s.sessions, Task: task, SameTask: s.Manifest.RunFile.Tools.SearchSameTask}}
}
