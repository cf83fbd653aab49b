// Package rl trains models for agents: a training is a program of the operator, which is started with a configuration and a
// dataset.
//
// The programs run on the runner's machine. Each training has a directory, in which everything stands that is known of it, so
// that a runner which is started anew finds those of an earlier one, dead or alive.
//
// # The trainer
//
// It is started in its directory with the configuration as a JSON file and these variables:
//
//	TRAJGEN_RL_CONFIG    the configuration: what the agent may change, and what is locked
//	TRAJGEN_RL_METRICS   the file to which it appends a JSON object a line: {"step": 1, "reward_mean": 0.4, ...}
//	TRAJGEN_RL_DATASET   the environment's dataset
//	TRAJGEN_RL_RUN_FILE  the run file with which it is played; "" for none
//	TRAJGEN_RL_PROGRAM   trajgen itself
//	TRAJGEN_RL_TRAINING  its directory
//
// All numbers of a line are metrics; step, reward_mean, percent_correct and eval_percent_correct are what agents know. It has
// ended well when it ends with 0. To stop it, it and all that it has started get a SIGTERM, and ten seconds later a SIGKILL.
package rl

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"trajgen/pipeline/model"
	"trajgen/pipeline/where/nearest"
	"trajgen/registry"
)

// Config is what trainings need.
type Config struct {
	Settings Settings
	Dir      string      // of trainings, which is made for the first
	Program  string      // trajgen
	Meter    model.Meter // pays for what rl_test_inference asks; nil where the run has no budget
	Lookup   func(name string) (string, bool)
	Now      func() time.Time
}

// Lab has the trainings of a run. It is safe for concurrent use.
type Lab struct {
	cfg Config
	env []string // of trainers

	mu sync.Mutex // one start or change at a time
}

// Open checks the environment of trainers. Trainings of earlier runs that still go on are found in the directory.
func Open(cfg Config) (*Lab, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	l := &Lab{cfg: cfg}
	for _, each := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
		if value, ok := cfg.Lookup(each); ok {
			l.env = append(l.env, each+"="+value)
		}
	}
	for _, each := range sorted(cfg.Settings.Trainer.Env) {
		l.env = append(l.env, each+"="+cfg.Settings.Trainer.Env[each])
	}
	var errs []error
	for _, each := range cfg.Settings.Trainer.EnvFrom {
		value, ok := cfg.Lookup(each)
		if !ok {
			errs = append(errs, fmt.Errorf("rl: trainer.env_from: the environment has no %s", each))
		}
		l.env = append(l.env, each+"="+value)
	}
	return l, errors.Join(errs...)
}

// Close stops all trainings, unless they are to be kept.
func (l *Lab) Close() error {
	if l.cfg.Settings.Keep {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.list("")
	errs := []error{err}
	for _, t := range all {
		if s := l.look(t).Status; s == Starting || s == Running {
			errs = append(errs, l.stop(t))
		}
	}
	return errors.Join(errs...)
}

// role is that of answers in the record of an episode.
const role = "rl"

// View is what an episode has selected, and its trainings.
type View struct {
	lab     *Lab
	episode string // "" sees the trainings of all
	attempt int
	ask     model.Ask

	mu          sync.Mutex // guards what follows
	environment string
	config      map[string]any
	started     int
	asked       int
}

// View makes the view of an attempt at an episode.
func (l *Lab) View(episode string, attempt int, ask model.Ask) *View {
	return &View{lab: l, episode: episode, attempt: attempt, ask: ask}
}

// remember does what cannot be done twice, or that gives something else another time. A failure is an answer, too.
func remember[T any](v *View, what string, do func() (T, error)) (T, error) {
	var answer struct {
		Value   T                 `json:"value"`
		Failure *registry.Failure `json:"failure,omitempty"`
	}
	v.mu.Lock()
	v.asked++
	question := fmt.Sprintf("%d %s", v.asked, what)
	v.mu.Unlock()
	work := func() (err error) {
		answer.Value, err = do()
		if failure, ok := errors.AsType[*registry.Failure](err); ok {
			answer.Failure, err = failure, nil
		}
		return err
	}
	var err error
	if v.ask == nil {
		err = work()
	} else {
		err = v.ask(role, question, &answer, work)
	}
	if err == nil && answer.Failure != nil {
		err = answer.Failure
	}
	return answer.Value, err
}

// EnvironmentInfo is an environment as an agent sees it.
type EnvironmentInfo struct {
	Name        string `json:"name"`
	Dataset     string `json:"dataset"`
	Description string `json:"description"`
}

// Environments are those that there are.
func (v *View) Environments() []EnvironmentInfo {
	list := []EnvironmentInfo{}
	for _, each := range sorted(v.lab.cfg.Settings.Environments) {
		e := v.lab.cfg.Settings.Environments[each]
		list = append(list, EnvironmentInfo{each, filepath.Base(e.Dataset), e.Description})
	}
	return list
}

// Select chooses an environment. The configuration begins with its defaults.
func (v *View) Select(environment string) error {
	s := v.lab.cfg.Settings
	if _, ok := s.Environments[environment]; !ok {
		have := append([]string{}, sorted(s.Environments)...)
		f := registry.Failf("unknown_environment", "environment %q does not exist%s", environment, nearest.DidYouMean(environment, have))
		f.Extra = map[string]any{"available": have}
		return f
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.environment, v.config = environment, map[string]any{}
	for _, each := range sorted(s.Fields) {
		v.config[each], _ = s.Fields[each].value(s.Fields[each].Default) // which was checked
	}
	return nil
}

// Setting is a field with its value.
type Setting struct {
	Field
	Value any `json:"value"`
}

// Selected is the environment, what may be changed and what may not.
func (v *View) Selected() (environment string, fields map[string]Setting, locked map[string]any, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.environment == "" {
		return "", nil, nil, registry.Failf("no_environment", "no environment is selected: call rl_select_environment first")
	}
	fields = map[string]Setting{}
	for each, field := range v.lab.cfg.Settings.Fields {
		fields[each] = Setting{field, v.config[each]}
	}
	locked = v.lab.cfg.Settings.Locked
	if locked == nil {
		locked = map[string]any{}
	}
	return v.environment, fields, locked, nil
}

// Edit changes a field, and returns the value that it has then.
func (v *View) Edit(field string, value any) (any, error) {
	_, fields, locked, err := v.Selected()
	if err != nil {
		return nil, err
	}
	if fixed, is := locked[field]; is {
		f := registry.Failf("locked", "%s is locked", field)
		f.Extra = map[string]any{"locked_value": fixed}
		return nil, f
	}
	known, ok := fields[field]
	if !ok {
		f := registry.Failf("unknown_field", "field %q does not exist%s", field, nearest.DidYouMean(field, sorted(fields)))
		f.Extra = map[string]any{"available_fields": append([]string{}, sorted(fields)...)}
		return nil, f
	}
	set, err := known.value(value)
	if err != nil {
		return nil, registry.Failf("invalid_value", "%s: %v", field, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.config[field] = set
	return set, nil
}

// Config is the configuration of a training that begins now.
func (v *View) Config() (environment string, config map[string]any, err error) {
	environment, fields, locked, err := v.Selected()
	config = map[string]any{}
	for each, value := range locked {
		config[each] = value
	}
	for each, field := range fields {
		config[each] = field.Value
	}
	return environment, config, err
}

func (l *Lab) atOnce() int { return cmp.Or(l.cfg.Settings.AtOnce, 1) }
