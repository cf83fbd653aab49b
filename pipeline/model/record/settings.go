package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Settings are the tape with all exchanges with models, as in the run file.
type Settings struct {
	Replay string `yaml:"replay" experiment:"always" help:"tape (file, or directory that has one) that answers instead of the model; with policy replay the run directory whose messages are repeated"`
	Record string `yaml:"record,omitempty" experiment:"no" help:"file, or existing directory, for the tape of all exchanges with models; --replay plays the run again from it"`
}

// Validate says what is wrong with the section. runs says that Replay is a run directory, whose messages are repeated, and no tape.
func (s Settings) Validate(runs bool) error {
	switch {
	case s.Record != "" && s.Replay != "":
		return errors.New("record and replay are given: what is played from a tape need not be recorded; leave one out")
	case s.Replay == "" && runs:
		return errors.New("the replay policy needs --replay RUN_DIRECTORY")
	case s.Replay == "":
		return nil
	}
	info, err := os.Stat(s.Replay)
	switch {
	case err != nil:
		return fmt.Errorf("replay: %w", err)
	case runs && !info.IsDir():
		return fmt.Errorf("the replay policy plays the journal of a run directory, and %s is none; leave policy out to play a tape", s.Replay)
	case runs || !info.IsDir():
		return nil
	}
	if _, err := os.Stat(Path(s.Replay)); err == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.Replay, "run.json")); err == nil {
		return fmt.Errorf("%s has no tape: record one with --record, or repeat the messages of its journal with --policy replay", s.Replay)
	}
	return fmt.Errorf("%s has no tape: give the file or directory that --record was given", s.Replay)
}
