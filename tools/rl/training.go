package rl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trajgen/outputs/log/disk"
	"trajgen/registry"
)

// The states of a training.
const (
	Starting = "starting" // not ready
	Running  = "running"
	Finished = "finished"
	Failed   = "failed"
	Died     = "died" // its process is gone, and did not say how it ended
	Stopped  = "stopped"
)

// Training is what stands in a training's directory.
type Training struct {
	ID          string         `json:"run_id"`
	Episode     string         `json:"episode"`
	Environment string         `json:"environment"`
	Config      map[string]any `json:"config"`
	Started     time.Time      `json:"started"`
	PID         int            `json:"pid"`
	Ready       bool           `json:"ready"`
	Stopped     bool           `json:"stopped"`
	Checked     *time.Time     `json:"checked,omitempty"` // when the agent was told its status last
}

// Look is how a training is now.
type Look struct {
	Training
	Status string
	Exit   *int
}

func (l *Lab) dir(id string) string { return filepath.Join(l.cfg.Dir, id) }

// save writes what is known of a training.
func (l *Lab) save(t Training) error {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(disk.Real{}, filepath.Join(l.dir(t.ID), "training.json"), disk.Bytes(append(data, '\n')))
}

// load reads what is known of a training.
func (l *Lab) load(id string) (t Training, err error) {
	data, err := os.ReadFile(filepath.Join(l.dir(id), "training.json"))
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, fmt.Errorf("read training %s: %w", id, err)
	}
	return t, nil
}

// list lists the trainings of an episode, or all, in the order in which they were started.
func (l *Lab) list(episode string) (all []Training, err error) {
	names, err := filepath.Glob(filepath.Join(l.cfg.Dir, "*", "training.json"))
	if err != nil {
		return nil, err
	}
	for _, each := range names {
		t, err := l.load(filepath.Base(filepath.Dir(each)))
		if err != nil {
			return nil, err
		}
		if episode == "" || t.Episode == episode {
			all = append(all, t)
		}
	}
	return inOrder(all), nil
}

// look sees how a training is.
func (l *Lab) look(t Training) Look {
	look := Look{Training: t, Status: Running}
	living := alive(l.dir(t.ID), t.PID) // before how it ended is read, which it writes before it does
	said, err := os.ReadFile(filepath.Join(l.dir(t.ID), "exit"))
	code, wrong := strconv.Atoi(strings.TrimSpace(string(said)))
	switch {
	case t.Stopped:
		look.Status = Stopped
	case err == nil && wrong == nil:
		if look.Exit, look.Status = &code, Finished; code != 0 {
			look.Status = Failed
		}
	case !living:
		look.Status = Died
	case !t.Ready:
		look.Status = Starting
	}
	return look
}

// own finds a training of the episode.
func (v *View) own(id string) (Training, error) {
	all, err := v.lab.list(v.episode)
	if err != nil {
		return Training{}, err
	}
	ids := []string{}
	for _, t := range all {
		if t.ID == id {
			return t, nil
		}
		ids = append(ids, t.ID)
	}
	f := registry.Failf("unknown_run", "training run %q does not exist", id)
	f.Extra = map[string]any{"available": ids}
	return Training{}, f
}

// Stop ends a training of the episode with all that it has started.
func (v *View) Stop(id string) (Look, error) {
	return remember(v, "stop "+id, func() (Look, error) {
		t, err := v.own(id)
		if err != nil {
			return Look{}, err
		}
		look := v.lab.look(t)
		if look.Status != Starting && look.Status != Running {
			f := registry.Failf("not_running", "training run %s is not running: it is %s", id, look.Status)
			f.Extra = map[string]any{"status": look.Status}
			return look, f
		}
		if err := v.lab.stop(t); err != nil {
			return look, err
		}
		look.Stopped, look.Status = true, Stopped
		return look, nil
	})
}

// stopTime is how long a trainer has to end in good order.
const stopTime = 10 * time.Second

func (l *Lab) stop(t Training) error {
	t.Stopped = true
	if err := l.save(t); err != nil { // before it ends, which else would be its own doing
		return err
	}
	return end(l.dir(t.ID), t.PID, stopTime)
}
