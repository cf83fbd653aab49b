package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/tape"
)

// The models of an episode beside its agent, as a tape tells them apart.
const (
	userRole     = "user"
	summaryRole  = "summary"
	approverRole = "approver"
)

// openTape opens the tape that is recorded, or the one that is played.
func (e *Experiment) openTape(context.Context) (err error) {
	f := e.File
	switch {
	case f.Record != "":
		if e.recorder, err = tape.Record(f.Record, f.resumed, e.Logger); err == nil {
			e.closers = append(e.closers, e.recorder.Close)
		}
	case f.playsTape():
		if e.tape, err = tape.Open(f.Replay, e.Logger); err == nil {
			e.closers = append(e.closers, e.tape.Close)
		}
	}
	return err
}

// playsTape says whether a tape stands in for the model.
func (f *File) playsTape() bool { return f.Replay != "" && f.Policy != "replay" }

// thread puts the tape into a model's settings.
func (e *Experiment) thread(cfg *model.Config, role string) {
	cfg.Record, cfg.Replay, cfg.Role = e.recorder, e.tape, role
	if e.tape == nil {
		return
	}
	about := e.tape.Session()
	if role == "" && e.File.BaseURL == "" && len(e.File.Endpoints) == 0 {
		// What is asked depends on who is asked.
		for _, base := range about.Bases {
			cfg.BaseURL, cfg.Endpoints = base, nil
		}
	}
	if role == "" && cfg.Window == 0 {
		cfg.Window = about.Window
	}
}

// apiKey reads an endpoint's key. Who plays a tape needs none.
func (e *Experiment) apiKey(name, baseURL string) (string, error) {
	if e.tape != nil {
		return "", nil
	}
	return APIKey(name, baseURL)
}

// headers are those of the agent's endpoint, and the values of them that are secret.
func (e *Experiment) headers() (headers map[string]string, secrets []string, err error) {
	if e.tape != nil {
		return e.File.Headers, nil, nil
	}
	return secretHeaders(e.File.Headers, e.File.HeaderEnv)
}

// beginTape tells the tape whose exchanges follow.
func (e *Experiment) beginTape(run string) error {
	if e.recorder == nil {
		return nil
	}
	about := tape.Session{Window: e.clients[0].Window()}
	if e.server == nil {
		about.Bases = []string{e.File.baseURL()}
	}
	return e.recorder.Begin(run, about)
}

// checkTape says what is wrong with the keys about tapes.
func (f *File) checkTape() error {
	if f.Record != "" && f.Replay != "" {
		return errors.New("record and replay are given: what is played from a tape need not be recorded; leave one out")
	}
	if f.Replay == "" {
		return nil
	}
	info, err := os.Stat(f.Replay)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if !f.playsTape() {
		if !info.IsDir() {
			return fmt.Errorf("the replay policy plays the journal of a run directory, and %s is none; leave policy out to play a tape", f.Replay)
		}
		return nil
	}
	if _, err := os.Stat(tape.Path(f.Replay)); info.IsDir() && err != nil {
		if _, err := os.Stat(filepath.Join(f.Replay, "run.json")); err == nil {
			return fmt.Errorf("%s has no tape: record one with --record, or repeat the messages of its journal with --policy replay", f.Replay)
		}
		return fmt.Errorf("%s has no tape: give the file or directory that --record was given", f.Replay)
	}
	return nil
}
