// Package reward judges a finished episode while its sandbox still stands.
//
// A verifier sees the agent's answer and files, and the agent never sees the verifier: the agent's processes are dead before the
// first file of a verifier exists, and the files that it left cannot change where a verifier's file goes or what Python imports at
// start-up.
package reward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Subject is what is judged.
type Subject struct {
	Answer string // the agent's last message
	// Sandbox returns the episode's sandbox, and opens it if no tool did. Only checks that need it call this.
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	// Own opens sandboxes for commands alone; nil has them run in the episode's.
	Own *Own
	// Apart says that the sandbox has its own processes and shared memory: only processes of the episode can send a signal to a
	// verifier, and all files in /dev/shm belong to the episode.
	Apart bool
	// Said returns the conversation and the calls of tools so far, as the journal has them; nil where they are not known.
	Said func() ([]episode.Message, []episode.ToolCall)
	// State returns what a web site of the task holds, as a JSON object; nil where there are none.
	State func(ctx context.Context, site string) (json.RawMessage, error)
	// Home and Outbox return what the episode's home holds, and what was sent from it, likewise.
	Home, Outbox func() (json.RawMessage, error)
	// Earlier are results of Judge, by the number of the check.
	Earlier map[int][]episode.Reward

	seal *seal // of what the agent left; nil until the first check begins
}

// Broken means that a verifier could not reach a verdict: the episode has no reward, which is not the same as zero.
type Broken struct {
	Class   string // exit_127, signal_9, timeout, output, files, state
	Message string
}

func (b *Broken) Error() string { return b.Message }

// verifier gives a check's verdict. An error is a *Broken, or one of the sandbox.
type verifier func(ctx context.Context, check episode.Check, subject Subject) (judgement, error)

// judgement is the verdict of a verifier.
type judgement struct {
	value  float64
	detail string
	// further are additional numbers by name, which are not part of the reward.
	further map[string]float64
}

// kind is one way to judge. A check is of one kind.
type kind struct {
	keys   []string                       // its keys in a dataset: its own name, and those that go with it
	given  func(check episode.Check) bool // whether a check is of the kind
	verify verifier
	// read takes the dataset's value of one of the keys. With nil the dataset reads them itself.
	read func(check *episode.Check, key string, value Value) error
}

// Value is a dataset's value for a key.
type Value interface {
	Text() (string, error)    // a string, or a number as written
	Texts() ([]string, error) // one such, or a list of them
	Number() (float64, error) // a finite number, or a string with one
	Pattern() (string, error) // a string with a regular expression
	JSON() json.RawMessage    // valid JSON; a string that holds an object or a list is that
}

var kinds = map[string]kind{
	"command": {verify: verifyCommand, keys: []string{"command", "env", "reward", "test_timeout", "tests", "timeout", "verifier"},
		given: func(check episode.Check) bool {
			return check.Command != "" && len(check.Tests) == 0 && check.Reward != "file"
		}},
	"tests": {verify: verifyCommand, given: func(check episode.Check) bool {
		return check.Command != "" && len(check.Tests) > 0 && check.Reward != "file"
	}},
	"reward_file": {verify: verifyRewardFile, given: func(check episode.Check) bool { return check.Reward == "file" }},
	"python":      python,
	"exact":       exact,
	"contains":    contains,
	"similar":     similar,
	"json":        jsonKind,
	"number":      number,
	"regex":       regex,
	"site_state":  siteState,
	"home_state":  held("home_state", func(c *episode.Check) *string { return &c.HomeState }, func(s Subject) getState { return s.Home }),
	"outbox":      held("outbox", func(c *episode.Check) *string { return &c.Outbox }, func(s Subject) getState { return s.Outbox }),
}

// Kinds lists the kinds of checks, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Keys maps the keys of checks in datasets to the kinds that each goes with.
func Keys() map[string][]string {
	keys := map[string][]string{}
	for _, name := range Kinds() {
		for _, key := range kinds[name].keys {
			keys[key] = append(keys[key], name)
		}
	}
	return keys
}

// Read takes the value of a key. Datasets read the keys of commands and of site_state themselves.
func Read(check *episode.Check, key string, value Value) error {
	for _, kind := range kinds {
		if kind.read != nil && slices.Contains(kind.keys, key) {
			return kind.read(check, key, value) // the same for all kinds with the key
		}
	}
	return fmt.Errorf("no kind of check has the key %q", key)
}

// Kind returns the kind of a check, or an error if it has none or several.
func Kind(check episode.Check) (string, error) {
	if check.Command == "" && (len(check.Tests) > 0 && check.Python == "" || check.Reward == "file") {
		return "", errors.New("verify: tests and a reward file need a command")
	}
	if timeout := cmp.Or(check.Timeout, DefaultTimeout); 2*check.TestTimeout >= timeout {
		return "", fmt.Errorf("verify: test_timeout is %s, want less than half of the check's timeout of %s", check.TestTimeout, timeout)
	}
	given := slices.DeleteFunc(Kinds(), func(name string) bool { return !kinds[name].given(check) })
	if len(given) != 1 {
		return "", fmt.Errorf("verify: need exactly one of %v, have %v", Kinds(), given)
	}
	return given[0], nil
}

// Judge runs one check. Its verdict comes first, then its further numbers.
func Judge(ctx context.Context, check episode.Check, subject Subject) ([]episode.Reward, error) {
	kind, err := Kind(check)
	if err != nil {
		return nil, &Broken{Class: "spec", Message: err.Error()}
	}
	name := cmp.Or(check.Name, kind)
	judged, err := subject.judge(ctx, check, kinds[kind].verify)
	if err != nil {
		return nil, fmt.Errorf("check (%s): %w", name, err)
	}
	weight := check.Weight
	if weight == 0 {
		weight = 1
	}
	rewards := []episode.Reward{{Name: name, Value: judged.value, Weight: weight, Detail: judged.detail}}
	for _, beside := range slices.Sorted(maps.Keys(judged.further)) {
		rewards = append(rewards, episode.Reward{Name: name + "." + beside, Value: judged.further[beside]})
	}
	return rewards, nil
}

// Verify runs every check that was not judged before, and returns the verdicts in order with their weighted mean. If a check
// is Broken it returns no reward: a mean over the other checks would be a different reward.
func Verify(ctx context.Context, checks []episode.Check, subject Subject) ([]episode.Reward, float64, error) {
	var total, weights float64
	rewards := make([]episode.Reward, 0, len(checks))
	subject.seal = &seal{}
	defer subject.seal.close()
	for i, check := range checks {
		judged := subject.Earlier[i]
		if judged == nil {
			var err error
			if judged, err = Judge(ctx, check, subject); err != nil {
				return nil, 0, fmt.Errorf("%d: %w", i+1, err)
			}
		}
		rewards = append(rewards, judged...)
		total += judged[0].Weight * judged[0].Value
		weights += judged[0].Weight
	}
	mean := total / weights
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return nil, 0, &Broken{Class: "spec", Message: fmt.Sprintf("verify: weights sum to %v", weights)}
	}
	return rewards, mean, nil
}

// Clear removes what a check brought into the sandbox, for an agent that goes on.
func Clear(ctx context.Context, check episode.Check, subject Subject) error {
	if check.Command == "" && check.Python == "" || subject.Own.apart(check) {
		return nil
	}
	sb, err := subject.Sandbox(ctx)
	if err != nil {
		return err
	}
	paths := []string{sb.Layout().Tests, string(groundOf(sb.Layout()))}
	if check.Reward == "file" {
		paths = append(paths, Verdicts)
	}
	for _, name := range slices.Sorted(maps.Keys(check.Tests)) {
		if !strings.HasPrefix(name, "/tests/") {
			paths = append(paths, name)
		}
	}
	return errors.Join(sb.KillAll(ctx), sb.Files().Remove(ctx, paths...))
}
