package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trajgen/tools/rl"
)

// lab opens the trainings of a run; nil where the run file declares none, or a recording answers for them.
func (f *File) lab() (*rl.Lab, error) {
	if len(f.RL.Environments) == 0 || f.replayed("rl") {
		return nil, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.OutDir(), "trainings")
	if f.RL.Dir != "" {
		dir = filepath.Join(f.RL.Dir, filepath.Base(f.OutDir()))
	}
	return rl.Open(rl.Config{Settings: f.RL, Dir: dir, Program: program, Lookup: os.LookupEnv, Now: time.Now})
}

// openLab opens the run's trainings, which it stops at its end.
func (e *Experiment) openLab(context.Context) (err error) {
	if e.lab, err = e.File.lab(); err != nil || e.lab == nil {
		return err
	}
	e.closers = append(e.closers, e.lab.Close)
	fmt.Fprintln(e.warnings, "trainings (rl.trainer) run on this machine, outside of the sandboxes")
	return nil
}
