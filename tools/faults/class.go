package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
	"trajgen/registry"
)

// class is a kind of fault.
type class struct {
	name, says string
	variants   []string // beside the usual form
	loud       bool     // the result says that something is wrong
	times      int      // how many calls a fault strikes; 0 is without end
	scope      scope    // which later calls
	needs      int      // tools that the episode must have
	answers    bool     // in its usual form, it answers in place of the tool
	pair       bool     // it strikes two calls of a turn
	// applies reports whether a call of the tool can have it, by what is known before the call runs.
	applies func(t *registry.Tool, call *episode.ToolCall) bool
	// plant fills in what is done to a call.
	plant func(s *strike)
	// changes makes another result of one of a call that succeeded, or reports that it finds nothing to change; nil for other classes.
	changes func(s *strike, result string) (string, bool)
}

// scope says which later calls a lasting fault strikes.
type scope int

const (
	sameArguments scope = iota // calls of the tool with the same arguments
	sameTool
	sameToolset
)

// strike is one call that a fault strikes.
type strike struct {
	*registry.Fault
	fault    *fault
	call     registry.PlantCall
	planter  *Planter
	settings ClassSettings
	rand     *rand.Rand
	env      *registry.Env             // while the call runs
	trace    func() []episode.ToolCall // the calls before this one, and perhaps itself
}

// classes are all classes, in the order of the manual.
func classes() []*class {
	return slices.Concat(errorClasses, schemaClasses, resultClasses, writeClasses)
}

// Classes are the names of the classes and of their variants, without None.
func Classes() (all []string) {
	for _, c := range classes() {
		all = append(all, c.name)
		for _, v := range c.variants {
			all = append(all, c.name+":"+v)
		}
	}
	return all
}

// classOf finds a class.
func classOf(name string) *class {
	for _, c := range classes() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// CheckClass says what is wrong with the name of a class, with or without a variant.
func CheckClass(name string) error {
	if name == None || slices.Contains(Classes(), name) {
		return nil
	}
	have := append(Classes(), None)
	return fmt.Errorf("no class %q%s", name, cmp.Or(nearest.DidYouMean(name, have), " (have "+strings.Join(have, ", ")+")"))
}

// choice is a class that can be drawn.
type choice struct {
	class   *class
	variant string
	weight  float64
}

// choices are the classes of the settings.
func (s *Settings) choices() (all []choice) {
	names := s.Classes
	if len(names) == 0 {
		for _, c := range classes() {
			names = append(names, c.name)
		}
	}
	for _, name := range names {
		base, variant, _ := strings.Cut(name, ":")
		weight := 1.0
		if w := s.Settings[base].Weight; w != nil {
			weight = *w
		}
		if c := classOf(base); c != nil {
			all = append(all, choice{c, variant, weight})
		}
	}
	return all
}

// instead answers the call without its tool.
func (s *strike) instead(answer func(s *strike) (string, error)) {
	s.Around = func(_ context.Context, env *registry.Env, _ func(context.Context) (string, error)) (string, error) {
		s.env, s.Planted.Effect = env, episode.EffectNone
		return answer(s)
	}
}

// change changes the result of a call that succeeded.
func (s *strike) change() {
	s.Around = func(ctx context.Context, env *registry.Env, run func(context.Context) (string, error)) (string, error) {
		s.env = env
		text, err := run(ctx)
		if err != nil {
			return text, err
		}
		if changed, ok := s.fault.class.changes(s, text); ok && changed != text {
			s.Planted.Effect = episode.EffectDone
			return changed, nil
		}
		return text, nil
	}
}

func always(*registry.Tool, *episode.ToolCall) bool { return true }

// outside reports whether a tool reaches beyond the sandbox.
func outside(t *registry.Tool) bool { return t.Outside != "" || t.Runner }
