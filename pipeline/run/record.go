package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
)

// Tape is a recording of all exchanges with models.
type Tape struct {
	Replay string `yaml:"replay" experiment:"always" help:"tape (file, or directory that has one) that answers instead of the model; with policy replay the run directory whose messages are repeated"`
	Record string `yaml:"record,omitempty" experiment:"no" help:"file, or existing directory, for the tape of all exchanges with models; --replay plays the run again from it"`
}

// Scripted has the settings of the embedded server, which plays without a model.
type Scripted struct {
	Policy string  `yaml:"policy" experiment:"always" help:"play against the embedded scripted server: oracle, noop, noisy or replay"`
	Skill  float64 `yaml:"skill" experiment:"in policy" help:"share of episodes that the noisy policy solves"`
}

// Validate says what is wrong with the section.
func (s Scripted) Validate() error {
	if s.Skill > 1 {
		return fmt.Errorf("skill is %v; from 0 to 1", s.Skill)
	}
	return nil
}

// openTape opens the tape to record or to replay.
func (m *models) openTape(context.Context) (err error) {
	f := m.File
	switch {
	case f.Tape.Record != "":
		if m.recorder.Tape, err = record.OpenTape(f.Tape.Record, f.resumed, m.Logger); err == nil {
			m.closers = append(m.closers, m.recorder.Tape.Close)
		}
	case f.playsTape():
		if m.replay, err = record.OpenReplay(f.Tape.Replay, m.Logger); err == nil {
			m.closers = append(m.closers, m.replay.Close)
		}
	}
	return err
}

// playsTape reports whether a tape replaces the model.
func (f *File) playsTape() bool { return f.Tape.Replay != "" && f.Scripted.Policy != "replay" }

// thread puts the tape into a model's settings.
func (m *models) thread(cfg *model.Config, role string) {
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
	if m.server == nil {
		about.Bases = []string{m.File.baseURL()}
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
	entry, ok := s.journal.Last(id)
	return ok && entry.Attempt >= attempt
}

// checkTape says what is wrong with the keys about tapes.
func (f *File) checkTape() error {
	if f.Tape.Record != "" && f.Tape.Replay != "" {
		return errors.New("record and replay are given: what is played from a tape need not be recorded; leave one out")
	}
	if f.Tape.Replay == "" {
		if f.Scripted.Policy == "replay" {
			return errors.New("the replay policy needs --replay RUN_DIRECTORY")
		}
		return nil
	}
	info, err := os.Stat(f.Tape.Replay)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if !f.playsTape() {
		if !info.IsDir() {
			return fmt.Errorf("the replay policy plays the journal of a run directory, and %s is none; leave policy out to play a tape", f.Tape.Replay)
		}
		return nil
	}
	if _, err := os.Stat(record.Path(f.Tape.Replay)); info.IsDir() && err != nil {
		if _, err := os.Stat(filepath.Join(f.Tape.Replay, "run.json")); err == nil {
			return fmt.Errorf("%s has no tape: record one with --record, or repeat the messages of its journal with --policy replay", f.Tape.Replay)
		}
		return fmt.Errorf("%s has no tape: give the file or directory that --record was given", f.Tape.Replay)
	}
	return nil
}
