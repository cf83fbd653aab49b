package moa

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Settings say which models answer, and which makes one answer of theirs, as in the run file.
type Settings struct {
	References []Model       `yaml:"references,omitempty" flag:"moa-references" experiment:"given"` // asked at once
	Aggregator Model         `yaml:"aggregator,omitempty" flag:"moa-aggregator" experiment:"in moa_references"`
	AtLeast    int           `yaml:"at_least,omitempty" flag:"moa-at-least" experiment:"in moa_references"`     // references that must answer; default 1
	MaxTokens  int           `yaml:"max_tokens,omitempty" flag:"moa-max-tokens" experiment:"in moa_references"` // of one answer; default DefaultTokens
	Timeout    time.Duration `yaml:"timeout,omitempty" flag:"moa-timeout" experiment:"no"`                      // of one answer, with its retries; default DefaultTime
	Retries    *int          `yaml:"retries,omitempty" flag:"moa-retries" experiment:"no"`                      // default DefaultRetries
}

// Model is a model, and where it is.
type Model struct {
	Model       string   `yaml:"model"`
	BaseURL     string   `yaml:"base_url,omitempty"`    // default: the run's
	APIKeyEnv   string   `yaml:"api_key_env,omitempty"` // default with the run's base_url: the run's
	Temperature *float64 `yaml:"temperature,omitempty"` // default ReferenceTemperature and AggregatorTemperature
}

// The defaults, and the bounds.
const (
	DefaultTokens         = 8192
	DefaultTime           = 5 * time.Minute
	DefaultRetries        = 5
	ReferenceTemperature  = 0.6
	AggregatorTemperature = 0.4

	maxReferences = 16
	maxTime       = 10 * time.Minute
	// CallTime is the longest that a call takes: the references answer at once, and then the aggregator.
	CallTime = 2*maxTime + time.Minute
)

// Declared reports whether the run file names models.
func (s Settings) Declared() bool { return len(s.References) > 0 }

// All are the references and the aggregator.
func (s Settings) All() []Model {
	if !s.Declared() {
		return nil
	}
	return append(append([]Model{}, s.References...), s.Aggregator)
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("moa: "+format, args...))
		}
	}
	if !s.Declared() {
		rest := s.Aggregator != (Model{}) || s.AtLeast+s.MaxTokens != 0 || s.Timeout != 0 || s.Retries != nil
		bad(rest, "references is empty: name the models that answer, such as references: [{model: NAME}]")
		return errors.Join(problems...)
	}
	for i, r := range s.References {
		bad(r.Model == "", "reference %d names no model", i+1)
	}
	bad(s.Aggregator.Model == "", "aggregator names no model: it makes one answer of the references'")
	bad(len(s.References) > maxReferences, "%d references; at most %d", len(s.References), maxReferences)
	bad(s.AtLeast < 0 || s.AtLeast > len(s.References), "at_least is %d of %d references", s.AtLeast, len(s.References))
	bad(s.Timeout < 0 || s.Timeout > maxTime, "timeout is %s; over 0 and at most %s", s.Timeout, maxTime)
	bad(s.MaxTokens < 0, "max_tokens is %d; not below 0", s.MaxTokens)
	bad(s.Retries != nil && *s.Retries < 0, "retries is below 0")
	return errors.Join(problems...)
}

// Variables are the variables whose values are keys.
func (s Settings) Variables() (all []string) {
	for _, m := range s.All() {
		all = append(all, m.APIKeyEnv)
	}
	return all
}

// Lacking says why the tool cannot be called.
func (s Settings) Lacking() (tool, why string) {
	if s.Declared() {
		return "", ""
	}
	return "mixture_of_agents", "it needs models, in the run file as moa: {references: [{model: NAME}, ...], aggregator: {model: NAME}}"
}

// Decides is what of the settings decides how episodes go: not where the models are.
func (s Settings) Decides() string {
	if !s.Declared() {
		return ""
	}
	type asked struct {
		Model       string
		Temperature *float64
	}
	var all []asked
	for _, m := range s.All() {
		all = append(all, asked{m.Model, m.Temperature})
	}
	text, _ := json.Marshal(all) // of names and numbers
	return fmt.Sprintf("%s at least %d, %d tokens", text, max(s.AtLeast, 1), s.Tokens())
}

// Tokens is the most tokens of one answer.
func (s Settings) Tokens() int {
	return cmp.Or(s.MaxTokens, DefaultTokens)
}
