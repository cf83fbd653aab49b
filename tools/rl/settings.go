package rl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/tools/internal/secrets"
)

// Settings say what an agent may train, and how.
type Settings struct {
	Environments map[string]Environment `yaml:"environments,omitempty" flag:"rl-environments" experiment:"given"`
	Trainer      Trainer                `yaml:"trainer,omitempty" flag:"rl-trainer" experiment:"given"`
	Fields       map[string]Field       `yaml:"fields,omitempty" flag:"rl-fields" experiment:"given"`
	Locked       map[string]any         `yaml:"locked,omitempty" flag:"rl-locked" experiment:"given"`
	Models       map[string]Model       `yaml:"models,omitempty" flag:"rl-models" experiment:"given"`
	Dir          string                 `yaml:"dir" flag:"rl-dir" experiment:"no" help:"directory of trainings, which each run has under its name (default: trainings in the run directory)"`
	CheckEvery   time.Duration          `yaml:"check_every" flag:"rl-check-every" experiment:"given" help:"how often rl_check_status tells the status of a training (default 30m)"`
	AtOnce       int                    `yaml:"at_once" flag:"rl-at-once" experiment:"given" help:"trainings of a run that go on at the same time (default 1)"`
	Keep         bool                   `yaml:"keep" flag:"rl-keep" experiment:"no" help:"let trainings go on when the run ends"`
}

// Environment is a dataset with its verifier.
type Environment struct {
	Dataset     string `yaml:"dataset"`
	RunFile     string `yaml:"run_file,omitempty"` // that it is played with
	Description string `yaml:"description,omitempty"`
}

// Trainer is a program of the operator, which runs on the runner's machine.
type Trainer struct {
	Command []string          `yaml:"command"` // with {config}, {metrics}, {dataset}, {run_file}, {dir} and {program} in its arguments
	Ready   Ready             `yaml:"ready,omitempty"`
	Env     map[string]string `yaml:"env,omitempty"`
	EnvFrom []string          `yaml:"env_from,omitempty"` // variables of the runner; secrets
}

// Ready says by what one sees that the trainer works. Without any it does from the start.
type Ready struct {
	URL     string        `yaml:"url,omitempty"`  // answers with 200
	Log     string        `yaml:"log,omitempty"`  // expression (RE2) for a line of its log
	File    string        `yaml:"file,omitempty"` // is there, in its directory
	Timeout time.Duration `yaml:"timeout,omitempty"`
}

// Field is a setting of trainings that the agent may change.
type Field struct {
	Type    string   `yaml:"type" json:"type"` // int, number, text or bool
	Default any      `yaml:"default" json:"default"`
	Min     *float64 `yaml:"min,omitempty" json:"min,omitempty"`
	Max     *float64 `yaml:"max,omitempty" json:"max,omitempty"`
	Values  []string `yaml:"values,omitempty" json:"values,omitempty"` // of a text
	Help    string   `yaml:"help,omitempty" json:"description,omitempty"`
}

// Model is a model that rl_test_inference asks.
type Model struct {
	Name      string `yaml:"model"`
	BaseURL   string `yaml:"base_url"`
	APIKeyEnv string `yaml:"api_key_env,omitempty"`
	// Tokens are the most that one test of it may use, prompts and replies together. A run with a budget sets as many aside.
	Tokens int `yaml:"tokens,omitempty"`
}

// The defaults.
const (
	defaultCheck = 30 * time.Minute
	defaultReady = 5 * time.Minute
	mostReady    = 15 * time.Minute
)

var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("rl: "+format, args...))
		}
	}
	for _, each := range slices.Concat(sorted(s.Environments), sorted(s.Fields), sorted(s.Locked), sorted(s.Models)) {
		bad(!name.MatchString(each), "%q: a name is a letter and up to 63 letters, digits, '_', '.' and '-'", each)
	}
	for _, each := range sorted(s.Environments) {
		bad(s.Environments[each].Dataset == "", "environment %s has no dataset", each)
	}
	bad(len(s.Environments) > 0 && (len(s.Trainer.Command) == 0 || s.Trainer.Command[0] == ""),
		"trainer has no command: want [PROGRAM, ARGUMENT, ...]")
	limit := s.Trainer.Ready.Timeout
	bad(limit < 0 || limit > mostReady, "trainer.ready.timeout is %s; up to %s", limit, mostReady)
	_, err := regexp.Compile(s.Trainer.Ready.Log)
	bad(err != nil, "trainer.ready.log: %v", err)
	for _, each := range sorted(s.Trainer.Env) {
		bad(!sandbox.IsVariable(each), "trainer.env: %q is not a name of a variable", each)
		bad(secrets.Named(each), "trainer.env: %s looks like a secret, and what is under env is written to run.json: "+
			"put its name under env_from", each)
	}
	for _, each := range s.Trainer.EnvFrom {
		bad(!sandbox.IsVariable(each), "trainer.env_from: %q is not a name of a variable", each)
	}
	for _, each := range sorted(s.Fields) {
		f := s.Fields[each]
		bad(!slices.Contains([]string{"int", "number", "text", "bool"}, f.Type),
			"field %s has the type %q; want int, number, text or bool", each, f.Type)
		_, err := f.value(f.Default)
		bad(err != nil, "field %s: default: %v", each, err)
		_, both := s.Locked[each]
		bad(both, "%s is under fields and under locked", each)
	}
	for _, each := range sorted(s.Models) {
		bad(s.Models[each].Name == "" || s.Models[each].BaseURL == "", "model %s needs model and base_url", each)
		bad(s.Models[each].Tokens < 0, "model %s: tokens is %d; not below 0", each, s.Models[each].Tokens)
	}
	return errors.Join(errs...)
}

// value takes a value for the field, which models also write as a text.
func (f Field) value(given any) (any, error) {
	text := strings.TrimSpace(fmt.Sprint(given))
	switch f.Type {
	case "text":
		value, is := given.(string)
		if !is || len(f.Values) > 0 && !slices.Contains(f.Values, value) || len(value) > 1000 {
			return nil, fmt.Errorf("%v: want %s", given, cmp.Or(strings.Join(f.Values, ", "), "a text"))
		}
		return value, nil
	case "bool":
		value, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return nil, fmt.Errorf("%v: want true or false", given)
		}
		return value, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(number) || math.IsInf(number, 0):
		return nil, fmt.Errorf("%v: want a number", given)
	case f.Type == "int" && (number != math.Trunc(number) || math.Abs(number) > 1<<53):
		return nil, fmt.Errorf("%v: want a whole number", given)
	case f.Min != nil && number < *f.Min, f.Max != nil && number > *f.Max:
		return nil, fmt.Errorf("%v: want from %s to %s", given, bound(f.Min, "any"), bound(f.Max, "any"))
	case f.Type == "int":
		return int64(number), nil
	}
	return number, nil
}

func bound(limit *float64, none string) string {
	if limit == nil {
		return none
	}
	return strconv.FormatFloat(*limit, 'g', -1, 64)
}

// Lacking says why the toolset cannot be used.
func (s Settings) Lacking() (toolset, why string) {
	if len(s.Environments) > 0 {
		return "", ""
	}
	return "rl", "it needs environments, in the run file as rl: {environments: {NAME: {dataset: PATH}}, trainer: {command: [...]}}"
}

// Outside says that trainings run on the machine, and with which settings.
func (s Settings) Outside() (toolset, where, version string) {
	if len(s.Environments) == 0 {
		return "", "", ""
	}
	settings, _ := json.Marshal(s) // values of a YAML file
	return "rl", "rl", string(settings)
}

// Variables are the variables that hold keys.
func (s Settings) Variables() []string {
	all := slices.Clone(s.Trainer.EnvFrom)
	for _, each := range sorted(s.Models) {
		all = append(all, s.Models[each].APIKeyEnv)
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
