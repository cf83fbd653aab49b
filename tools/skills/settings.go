package skills

import (
	"errors"
	"fmt"
	"slices"
)

// Settings say which skills episodes have, as in the run file.
type Settings struct {
	Dirs    []string `yaml:"dirs" flag:"skills" experiment:"always" help:"skills that episodes have: folders with a folder for each, bundled (those that come along) or hub (those that trajgen skills install keeps)"`
	Include []string `yaml:"include,omitempty" flag:"skills-include" experiment:"in skills" help:"only these skills, by name (default: all)"`
	Mode    string   `yaml:"mode,omitempty" flag:"skills-mode" experiment:"given" help:"with (default), without, or draw: which episodes have the skills is drawn, and recorded with its probability"`
	Share   float64  `yaml:"share,omitempty" flag:"skills-share" experiment:"given" help:"with mode draw: share of the episodes that have the skills (default 0.5)"`
	Guard   string   `yaml:"guard,omitempty" flag:"skills-guard" experiment:"no" help:"skills of the run's own folders that look dangerous: block (default) or warn"`

	InlineShell bool `yaml:"inline_shell,omitempty" flag:"skills-inline-shell" experiment:"given" help:"run commands that stand in a skill as !(command) between back quotes, in the sandbox, when it is viewed, and show their output"`
}

// The modes.
const (
	With    = "with"
	Without = "without"
	Draw    = "draw"
)

// Places that Dirs may name beside folders.
const (
	BundledDir = "bundled"
	HubDir     = "hub"
)

// Given says whether the run has skills.
func (s Settings) Given() bool { return len(s.Dirs) > 0 }

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("skills: "+format, args...))
		}
	}
	bad(!slices.Contains([]string{"", With, Without, Draw}, s.Mode), "mode is %q; with, without or draw", s.Mode)
	bad(!slices.Contains([]string{"", "block", "warn"}, s.Guard), "guard is %q; block or warn", s.Guard)
	bad(s.Share != 0 && s.Mode != Draw, "share goes with mode draw")
	bad(s.Share >= 1, "share is %v; over 0 and below 1", s.Share)
	bad(!s.Given() && (s.Mode != "" || len(s.Include) > 0), "dirs is empty: name folders with skills, bundled or hub")
	return errors.Join(errs...)
}
