package run

import (
	"context"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/model/scripted"
)

// exchanges are what models say, as tapes and records keep it.
type exchanges struct {
	*opened
	recorder record.Recorder
	replay   *record.Replay // the replayed tape; nil without
}

// openTape opens the tape to record or to replay.
func (m *exchanges) openTape(context.Context) (err error) {
	f := m.File
	switch {
	case f.Tape.Record != "":
		if m.recorder.Tape, err = record.OpenTape(f.Tape.Record, f.resumed, m.Logger); err == nil {
			m.closers = append(m.closers, m.recorder.Tape.Close)
		}
	case f.Tape.Replay != "" && f.Scripted.Policy != scripted.Replay:
		if m.replay, err = record.OpenReplay(f.Tape.Replay, m.Logger); err == nil {
			m.closers = append(m.closers, m.replay.Close)
		}
	}
	return err
}

// thread puts the tape into a model's settings.
func (m *exchanges) thread(cfg *model.Config, role string) {
	cfg.Record, cfg.Replay, cfg.Role = m.recorder.Tape, m.replay, role
	if m.replay == nil {
		return
	}
	about := m.replay.Session()
	if role == "" && m.File.Model.BaseURL == "" && len(m.File.Model.Endpoints) == 0 {
		// What a client sends depends on the host of the base URL.
		for _, base := range about.Bases {
			cfg.BaseURL, cfg.Endpoints = base, nil
		}
	}
	if role == "" && cfg.Window == 0 {
		cfg.Window = about.Window
	}
}

// apiKey reads an endpoint's key. A replay needs none.
func (m *models) apiKey(name, baseURL string) (string, error) {
	if m.replay != nil {
		return "", nil
	}
	key, err := APIKey(name, baseURL)
	return key, m.onResume(err)
}

// headers are the headers of the agent's endpoint, and their secret values.
func (m *models) headers() (headers map[string]string, secrets []string, err error) {
	if m.replay != nil {
		return m.File.Model.Headers, nil, nil
	}
	headers, secrets, err = secretHeaders(m.File.Model.Headers, m.File.Model.HeaderEnv)
	return headers, secrets, m.onResume(err)
}

// beginTape writes to the tape which run's exchanges follow.
func (m *models) beginTape(run string) error {
	if m.recorder.Tape == nil {
		return nil
	}
	about := record.Session{Window: m.clients[0].Window()}
	if m.Scripted == nil {
		about.Bases = []string{baseURL(m.File.Model)}
	}
	return m.recorder.Tape.Begin(run, about)
}

// openTurns opens the record of the answers that episodes in play got.
func (s *Run) openTurns() (err error) {
	if s.Exp.File.Play.DurableTurns {
		s.Exp.recorder.Turns, err = record.OpenTurns(s.dir, record.TurnsOptions{Finished: s.ended, Logger: s.logger})
	}
	return err
}

// Recorder records episodes in play; nil without durable_turns.
func (s *Run) Recorder() *record.Recorder {
	if s.Exp.recorder.Turns == nil {
		return nil
	}
	return &s.Exp.recorder
}

// ended reports whether the journal has an attempt, or a later one.
func (s *Run) ended(id string, attempt int) bool {
	entry, ok := s.journal.Last(episode.RootOf(id)) // which has its subagents in its record
	return ok && entry.Attempt >= attempt
}
