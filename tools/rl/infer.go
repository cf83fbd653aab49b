package rl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"trajgen/outputs/log/blobs"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/where/nearest"
	"trajgen/registry"
)

// Tried is how a model did in an environment.
type Tried struct {
	Model    string   `json:"model"`
	Accuracy *float64 `json:"accuracy"` // share of the judged completions that score 1
	Reward   *float64 `json:"reward_mean"`
	Steps    int      `json:"steps"`       // tasks
	Judged   int      `json:"completions"` // with a reward
	Errors   int      `json:"errors"`      // that ended in an error, and have none
	Failed   string   `json:"error,omitempty"`
}

// Trial is what rl_test_inference found out, and what it asked for that.
type Trial struct {
	Tried []Tried
	Asked []episode.Inquiry
}

// tryTime is how long a model may take.
const tryTime = 600 * time.Second

// Try plays the selected environment shortly against models.
func (v *View) Try(ctx context.Context, models []string, steps, group int) (Trial, error) {
	s := v.lab.cfg.Settings
	chosen, _, _, err := v.Selected()
	if err != nil {
		return Trial{}, err
	}
	if len(models) == 0 {
		models = sorted(s.Models)
	}
	if len(models) == 0 {
		return Trial{}, registry.Failf("no_models", "this run declares no models to test")
	}
	for _, each := range models {
		if _, ok := s.Models[each]; !ok {
			f := registry.Failf("unknown_model", "model %q does not exist%s", each, nearest.DidYouMean(each, sorted(s.Models)))
			f.Extra = map[string]any{"available": append([]string{}, sorted(s.Models)...)}
			return Trial{}, f
		}
	}
	what := fmt.Sprintf("try %s %v %d %d", chosen, models, steps, group)
	return remember(v, what, func() (trial Trial, err error) {
		for _, each := range slices.Compact(slices.Sorted(slices.Values(models))) {
			tried, asked, err := v.lab.try(ctx, s.Environments[chosen], each, steps, group)
			if err != nil {
				return trial, err
			}
			trial.Tried, trial.Asked = append(trial.Tried, tried), append(trial.Asked, asked...)
		}
		return trial, nil
	})
}

// report is what is read of a run's report.
type report struct {
	Episodes struct{ Tasks, Judged, Errors int }
	Reward   struct{ Mean *float64 }
	Outcomes []struct {
		Outcome episode.Outcome
		Count   int
	}
	Tokens struct {
		episode.Usage
		Unreported int `json:"unreported_turns"`
	}
	Cost struct{ USD *float64 }
}

// The exit codes of trajgen run that say how far it came.
const (
	exitMistake = 2 // nowhere
	exitErrors  = 3 // some episodes ended in an error
	exitBudget  = 5 // the tokens were used up
)

// try plays an environment. In a run with a budget, money for the most that it may use is set aside before.
func (l *Lab) try(ctx context.Context, e Environment, named string, steps, group int) (Tried, []episode.Inquiry, error) {
	if l.cfg.Meter == nil {
		tried, asked, _, err := l.play(ctx, e, named, steps, group)
		return tried, asked, err
	}
	m := l.cfg.Settings.Models[named]
	// Replies cost more than prompts. The turn says that the episode has begun.
	receipt, err := l.cfg.Meter.Reserve(ctx, model.Bound{Model: m.Name, Turn: 1, Completion: m.Tokens})
	if err != nil {
		return Tried{Model: named}, nil, err
	}
	tried, asked, billed, err := l.play(ctx, e, named, steps, group)
	switch {
	case len(asked) > 0:
		receipt.Settle("", *asked[0].Usage)
	case billed:
		receipt.Settle("", episode.Usage{}) // nothing says how much
	default:
		receipt.Void()
	}
	return tried, asked, err
}

// play plays an environment with trajgen itself, in a run of its own that is gone afterwards. It says whether models may have been
// asked.
func (l *Lab) play(ctx context.Context, e Environment, named string, steps, group int) (
	_ Tried, _ []episode.Inquiry, billed bool, _ error) {
	tried, m := Tried{Model: named}, l.cfg.Settings.Models[named]
	if err := os.MkdirAll(l.cfg.Dir, 0o777); err != nil {
		return tried, nil, false, err
	}
	dir, err := os.MkdirTemp(l.cfg.Dir, ".try-")
	if err != nil {
		return tried, nil, false, err
	}
	defer os.RemoveAll(dir)
	args := []string{
		"run", "--dataset", e.Dataset, "--model", m.Name, "--base-url", m.BaseURL, "--max-tasks", strconv.Itoa(steps),
		"--samples", strconv.Itoa(group), "--out", filepath.Join(dir, "run"), "--quiet", "--json",
	}
	if e.RunFile != "" {
		args = append(args, "-f", e.RunFile)
	}
	if m.APIKeyEnv != "" {
		args = append(args, "--api-key-env", m.APIKeyEnv)
	}
	if m.Tokens > 0 {
		args = append(args, "--budget-tokens", strconv.Itoa(m.Tokens))
	}
	limited, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(limited, l.cfg.Program, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	_ = cmd.Run() // which ProcessState tells
	var got report
	code := cmd.ProcessState.ExitCode() // -1 of one that was killed, or did not start
	billed = cmd.ProcessState != nil && code != exitMistake
	switch {
	case ctx.Err() != nil:
		return tried, nil, billed, context.Cause(ctx)
	case limited.Err() != nil:
		tried.Failed = fmt.Sprintf("it took longer than %s", tryTime)
	case code != 0 && code != exitErrors && code != exitBudget:
		tried.Failed = "it could not be tried: " + last(said.String())
	default:
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			return tried, nil, billed, fmt.Errorf("read the report of %s: %w", named, err)
		}
	}
	switch {
	case tried.Failed != "":
		return tried, nil, billed, nil
	case code == exitBudget:
		tried.Failed = fmt.Sprintf("the %d tokens of a test were not enough for all", m.Tokens)
	}
	tried.Steps, tried.Judged, tried.Errors = got.Episodes.Tasks, got.Episodes.Judged, got.Episodes.Errors
	tried.Reward = got.Reward.Mean
	if tried.Judged > 0 {
		solved := 0
		for _, count := range got.Outcomes {
			if count.Outcome == episode.Success {
				solved = count.Count
			}
		}
		tried.Accuracy = new(math.Round(float64(solved)/float64(tried.Judged)*1e4) / 1e4)
	}
	usage := got.Tokens.Usage
	usage.Reported = got.Tokens.Unreported == 0
	return tried, []episode.Inquiry{{
		Role: role, Asked: m.Name, Model: m.Name, Text: blobs.Digest([]byte(strings.Join(args[:11], " "))),
		Usage: &usage, CostUSD: got.Cost.USD,
	}}, billed, nil
}

// last is the last line of what a program said.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	text := strings.ToValidUTF8(strings.TrimPrefix(lines[len(lines)-1], "trajgen: "), "\uFFFD")
	return text[:min(len(text), 300)]
}
