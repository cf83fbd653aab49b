package run

import (
	"iter"
	"log/slog"
	"path/filepath"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/sessions"
)

// newSessions opens the index of a run's finished episodes. It lies beside the journal and is made from it.
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

// finished adapts a journal to the index.
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

// Services are the services that a run gives the tools of an episode.
func (s *Run) Services(task *episode.Task, ep *episode.Episode, ask model.Ask) []any {
	view := &sessions.View{Store: s.sessions, Task: task, SameTask: s.Manifest.RunFile.Tools.SearchSameTask}
	return append(s.Exp.services.Of(task, ep, ask), view)
}
