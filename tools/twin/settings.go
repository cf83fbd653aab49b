package twin

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"trajgen/registry"
)

// Settings say whether calls of tools that answer from outside of the sandbox are recorded or replayed, as in the run file.
type Settings struct {
	Mode      string   `yaml:"mode" flag:"twin" experiment:"given" help:"tools that answer from outside of the sandbox (web, plugins, MCP servers, a real home, messages): live (default), record (each call is kept in the run directory) or replay (a recording alone answers)"`
	Recording string   `yaml:"recording" flag:"twin-recording" experiment:"in twin" help:"with replay: the run directory whose calls were recorded"`
	Tools     []string `yaml:"tools,omitempty" flag:"twin-tools" experiment:"in twin"` // patterns of their names; default all
	MaxMisses int      `yaml:"max_misses,omitempty" flag:"twin-max-misses" experiment:"in twin"`
}

// The modes.
const (
	Live   = "live"
	Record = "record"
	Replay = "replay"
)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("twin: "+format, args...))
		}
	}
	modes := []string{"", Live, Record, Replay}
	bad(!slices.Contains(modes, s.Mode), "unknown mode %q (have %s)", s.Mode, strings.Join(modes[1:], ", "))
	bad((s.Mode == Replay) != (s.Recording != ""), "mode replay and recording (--twin-recording RUN) go together")
	bad(s.Mode != Record && s.Mode != Replay && len(s.Tools) > 0, "tools are for the modes record and replay")
	bad(s.MaxMisses < 0 || s.MaxMisses > 0 && s.Mode != Replay, "max_misses goes with mode replay, and is not below 0")
	for _, pattern := range s.Tools {
		_, err := path.Match(pattern, "")
		bad(err != nil, "%q is not a pattern of names, such as web_* or plugin_?", pattern)
	}
	return errors.Join(problems...)
}

// Check refuses a pattern that no tool fits, as a misspelt one would leave a tool to itself.
func (s Settings) Check(tools []registry.Tool) error {
	var problems []error
	for _, pattern := range s.Tools {
		fits := func(t registry.Tool) bool { return t.Outside != "" && match(pattern, t.Name) }
		if !slices.ContainsFunc(tools, fits) {
			problems = append(problems, fmt.Errorf("twin: no tool that answers from outside of the sandbox fits %q", pattern))
		}
	}
	return errors.Join(problems...)
}

// Answers reports whether the recording alone is to answer calls of tools that answer from outside.
func (s Settings) Answers(tools ...string) bool {
	return s.Mode == Replay && !slices.ContainsFunc(tools, func(tool string) bool { return !s.covers(tool) })
}

// covers reports whether calls of a tool that answers from outside are recorded or replayed.
func (s Settings) covers(tool string) bool {
	return len(s.Tools) == 0 || slices.ContainsFunc(s.Tools, func(pattern string) bool { return match(pattern, tool) })
}

func match(pattern, name string) bool {
	fits, err := path.Match(pattern, name)
	return fits && err == nil
}
