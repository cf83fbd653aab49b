package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/where/nearest"
)

// Settings say which faults are planted, as in the run file. Without Twins and Level there are none.
type Settings struct {
	Twins bool    `yaml:"twins,omitempty" flag:"faults-twins" experiment:"given"` // each fault in a twin of a clean episode
	Level float64 `yaml:"level,omitempty" flag:"faults-level" experiment:"given"` // the chance of a fault at each call that can have one
	Clean string  `yaml:"clean,omitempty" flag:"faults-clean" experiment:"given"` // run directory of the clean episodes; "" plays them first
	Seed  uint64  `yaml:"seed,omitempty" flag:"faults-seed" experiment:"given"`   // 0: the run's

	Tools    []string                 `yaml:"tools,omitempty" flag:"faults-tools" experiment:"given"`       // none: all
	Classes  []string                 `yaml:"classes,omitempty" flag:"faults-classes" experiment:"given"`   // with variants, such as timeout:done; none: each in its usual form
	Settings map[string]ClassSettings `yaml:"settings,omitempty" flag:"faults-settings" experiment:"given"` // by class

	MaxPerEpisode int `yaml:"max_per_episode,omitempty" flag:"faults-max-per-episode" experiment:"given"` // that begin; 0: any number

	// Of twins.
	Pairs       int     `yaml:"pairs,omitempty" flag:"faults-pairs" experiment:"given"` // of a cell; or:
	Probability float64 `yaml:"probability,omitempty" flag:"faults-probability" experiment:"given"`
	Position    string  `yaml:"position,omitempty" flag:"faults-position" experiment:"given"` // all (default) or ordinal
	Where       string  `yaml:"where,omitempty" flag:"faults-where" experiment:"given"`       // a condition on clean episodes

	// Recoverable is a file of trajgen check --faults --json: what its tasks cannot recover from is told apart in the twins.
	Recoverable string `yaml:"recoverable,omitempty" flag:"faults-recoverable" experiment:"given"`

	Alternatives [][]string         `yaml:"alternatives,omitempty" flag:"faults-alternatives" experiment:"no"` // tools that can stand for each other
	Mitigate     Mitigation         `yaml:"mitigate,omitempty" flag:"faults-mitigate" experiment:"given"`
	Limits       map[string]float64 `yaml:"limits,omitempty" flag:"faults-limits" experiment:"no"` // of trajgen reliability: see limitNames
}

// ClassSettings change a class.
type ClassSettings struct {
	Lasting string        `yaml:"lasting,omitempty"` // once or sticky
	Times   int           `yaml:"times,omitempty"`   // how many calls a fault strikes
	Charge  time.Duration `yaml:"charge,omitempty"`  // on the agent's clock: timeout (default 10 s), slow (60 s)
	Share   *float64      `yaml:"share,omitempty"`   // of what is written that partial_write leaves (default 0.5)
	Weight  *float64      `yaml:"weight,omitempty"`  // among the classes of a call, at a level (default 1)
}

// Mitigation is what the harness does about faults before the agent sees them.
type Mitigation struct {
	Retry int `yaml:"retry,omitempty"` // of calls that only read and fail loudly
}

// The values of Position and Lasting.
const (
	PositionAll     = "all"
	PositionOrdinal = "ordinal"

	lastingOnce   = "once"
	lastingSticky = "sticky"
)

// limitNames are the keys of Limits.
var limitNames = []string{"max_harm", "max_error_rate", "max_unresolved"}

// On reports whether faults are planted.
func (s *Settings) On() bool { return s.Twins || s.Level > 0 }

// Validate says what is wrong.
func (s *Settings) Validate() error {
	var wrong []error
	bad := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf("faults: "+format, args...))
		}
	}
	given := len(s.Tools)+len(s.Classes)+len(s.Settings) > 0
	bad(given && !s.On(), "say twins: true or a level, such as level: 0.1")
	bad(s.Twins && s.Level > 0, "twins and level are two ways to plant; leave one out")
	bad(!(s.Level <= 1), "level is %v; a chance from 0 to 1", s.Level)
	bad(!(s.Probability <= 1), "probability is %v; a chance from 0 to 1", s.Probability)
	bad(s.Pairs > 0 && s.Probability > 0, "pairs and probability both say how many twins are played; leave one out")
	bad(!s.Twins && (s.Clean != "" || s.Pairs > 0 || s.Probability > 0 || s.Position != "" || s.Where != "" || s.Recoverable != ""), "clean, pairs, probability, position, where and recoverable are of twins: say twins: true")
	bad(s.Twins && s.MaxPerEpisode > 0, "max_per_episode is of a level; a twin has one fault")
	bad(!slices.Contains([]string{"", PositionAll, PositionOrdinal}, s.Position), "position is %q; %s or %s", s.Position, PositionAll, PositionOrdinal)
	bad(s.Mitigate.Retry < 0, "mitigate.retry is %d; not below 0", s.Mitigate.Retry)
	for _, name := range s.Classes {
		if err := CheckClass(name); err != nil {
			bad(true, "%v", err)
		}
		base, _, _ := strings.Cut(name, ":")
		bad(base == None && s.Level > 0, "class none is of twins")
	}
	for name, c := range s.Settings {
		err := CheckClass(name)
		bad(err != nil, "settings: %v", err)
		bad(strings.Contains(name, ":"), "settings: %s: the variant stands in classes, the settings are of the class", name)
		bad(!slices.Contains([]string{"", lastingOnce, lastingSticky}, c.Lasting), "settings: %s: lasting is %q; %s or %s", name, c.Lasting, lastingOnce, lastingSticky)
		bad(c.Lasting != "" && c.Times > 0, "settings: %s: lasting and times both say how long; leave one out", name)
		bad(c.Times < 0 || c.Charge < 0 || c.Weight != nil && !(*c.Weight >= 0), "settings: %s: times, charge and weight are not below 0", name)
		bad(c.Share != nil && !(*c.Share >= 0 && *c.Share < 1), "settings: %s: share is %v; from 0 to below 1", name, c.Share)
		bad(c.Charge > 0 && name != "timeout" && name != "slow", "settings: %s: charge is of timeout and slow", name)
		bad(c.Share != nil && name != "partial_write", "settings: %s: share is of partial_write", name)
	}
	for name, limit := range s.Limits {
		bad(!slices.Contains(limitNames, name), "limits: no %q%s", name, nearest.DidYouMean(name, limitNames))
		bad(!(limit >= 0 && limit <= 1), "limits: %s is %v; from 0 to 1", name, limit)
	}
	return errors.Join(wrong...)
}
