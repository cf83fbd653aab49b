package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trajgen/pipeline/model"
	"trajgen/tools/rl"
)

// openLab opens the trainings of a run, which it stops at its end, where the run file declares some and no recording answers for them.
func (s *services) openLab(context.Context) error {
	f := &s.File
	if len(f.RL.Environments) == 0 || replayed(f.Twin, "rl") {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Join(f.OutDir(), "trainings")
	if f.RL.Dir != "" {
		dir = filepath.Join(f.RL.Dir, filepath.Base(f.OutDir()))
	}
	var meter model.Meter // a nil ledger would make an interface that is not nil
	if s.ledger != nil {
		meter = s.ledger
	}
	lab, err := rl.Open(rl.Config{Settings: f.RL, Dir: dir, Program: program, Meter: meter, Lookup: os.LookupEnv, Now: time.Now})
	if err != nil {
		return err
	}
	if s.apart { // its trainings go on: the next call is about them, whoever has begun them
		s.made(func(attempt) []any { return []any{lab.View("", 0, nil)} })
		return nil
	}
	s.closers = append(s.closers, lab.Close)
	s.made(func(a attempt) []any { return []any{lab.View(a.ep.ID, a.ep.Attempt, a.ask)} })
	fmt.Fprintln(s.warnings, "trainings (rl.trainer) run on this machine, outside of the sandboxes")
	return nil
}
