// Package reward judges a finished episode while its sandbox still stands.
//
// A verifier sees the agent's answer and files; the agent sees nothing of the verifier: its processes are dead before
// the first file of a verifier exists, and what it left behind has no say in where that file goes or what Python
// imports at start-up.
package reward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Subject is what is judged.
type Subject struct {
	Answer string // the agent's last message
	// Sandbox returns the episode's sandbox, opening it when no tool did. It is called only by checks that need it.
	Sandbox func(ctx context.Context) (sandbox.Sandbox, error)
	// Apart says that the sandbox has processes and shared memory of its own: no process but those of the episode can
	// send a signal to a verifier, and all files of /dev/shm are the episode's.
	Apart bool
}

// Broken means that a verifier could not reach a verdict: the episode has no reward, which is not the same as zero.
type Broken struct {
	Class   string // exit_127, signal_9, timeout, output, files
	Message string
}

func (b *Broken) Error() string { return b.Message }

// verifier gives a check's verdict. An error is a *Broken, or one of the sandbox.
type verifier func(ctx context.Context, check episode.Check, subject Subject) (judgement, error)

// judgement is what a verifier says.
type judgement struct {
	value  float64
	detail string
	// further are numbers that were measured beside and are no part of the reward, by name.
	further map[string]float64
}

// verifiers holds every kind of check by its name.
var verifiers = map[string]verifier{
	"command":     verifyCommand,
	"tests":       verifyCommand,
	"reward_file": verifyRewardFile,
	"exact":       ofAnswer(verifyExact),
	"number":      ofAnswer(verifyNumber),
	"regex":       ofAnswer(verifyRegex),
}

// Kinds lists the kinds of checks, sorted.
func Kinds() []string {
	names := make([]string, 0, len(verifiers))
	for name := range verifiers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Kind says which kind a check is, or an error when it is none or several.
func Kind(check episode.Check) (string, error) {
	var kinds []string
	switch {
	case len(check.Tests) > 0 && check.Command == "":
		return "", errors.New("verify: tests need a command that runs them")
	case check.Reward == "file" && check.Command == "":
		return "", errors.New("verify: reward file needs a command that writes it")
	case check.Reward == "file":
		kinds = append(kinds, "reward_file")
	case len(check.Tests) > 0:
		kinds = append(kinds, "tests")
	case check.Command != "":
		kinds = append(kinds, "command")
	}
	if check.Exact != nil {
		kinds = append(kinds, "exact")
	}
	if check.Number != nil {
		kinds = append(kinds, "number")
	}
	if check.Regex != "" {
		kinds = append(kinds, "regex")
	}
	if len(kinds) != 1 {
		return "", fmt.Errorf("verify: need exactly one of %v, have %v", Kinds(), kinds)
	}
	return kinds[0], nil
}

// Verify runs every check and returns the verdicts in order with their weighted mean. It returns no reward at all
// when one check breaks: a mean over what happened to work would be a different reward.
func Verify(ctx context.Context, checks []episode.Check, subject Subject) ([]episode.Reward, float64, error) {
	var total, weights float64
	rewards := make([]episode.Reward, 0, len(checks))
	for i, check := range checks {
		kind, err := Kind(check)
		if err != nil {
			return nil, 0, &Broken{Class: "spec", Message: err.Error()}
		}
		name := cmp.Or(check.Name, kind)
		judged, err := verifiers[kind](ctx, check, subject)
		if err != nil {
			return nil, 0, fmt.Errorf("check %d (%s): %w", i+1, name, err)
		}
		weight := check.Weight
		if weight == 0 {
			weight = 1
		}
		rewards = append(rewards, episode.Reward{Name: name, Value: judged.value, Weight: weight, Detail: judged.detail})
		for _, beside := range slices.Sorted(maps.Keys(judged.further)) {
			rewards = append(rewards, episode.Reward{Name: name + "." + beside, Value: judged.further[beside]})
		}
		total += weight * judged.value
		weights += weight
	}
	mean := total / weights
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return nil, 0, &Broken{Class: "spec", Message: fmt.Sprintf("verify: weights sum to %v", weights)}
	}
	return rewards, mean, nil
}
