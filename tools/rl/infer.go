package rl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
			f := registry.Failf("unknown_model", "model %q does not exist%s", each, registry.DidYouMean(each, sorted(s.Models)))
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

// try plays an environment with trajgen itself, in a run of its own that is gone afterwards.
func (l *Lab) try(ctx context.Context, e Environment, named string, steps, group int) (Tried, []episode.Inquiry, error) {
	tried, m := Tried{Model: named}, l.cfg.Settings.Models[named]
	if err := os.MkdirAll(l.cfg.Dir, 0o777); err != nil {
		return tried, nil, err
	}
	dir, err := os.MkdirTemp(l.cfg.Dir, ".try-")
	if err != nil {
		return tried, nil, err
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
	limited, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(limited, l.cfg.Program, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	ran := cmd.Run()
	var got report
	exit, ended := errors.AsType[*exec.ExitError](ran)
	switch {
	case ctx.Err() != nil:
		return tried, nil, context.Cause(ctx)
	case limited.Err() != nil:
		tried.Failed = fmt.Sprintf("it took longer than %s", tryTime)
	case ran != nil && (!ended || exit.ExitCode() != 3): // 3: some episodes ended in an error
		tried.Failed = "it could not be tried: " + last(said.String())
	default:
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			return tried, nil, fmt.Errorf("read the report of %s: %w", named, err)
		}
	}
	if tried.Failed != "" {
		return tried, nil, nil
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
	}}, nil
}

// last is the last line of what a program said.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	text := strings.ToValidUTF8(strings.TrimPrefix(lines[len(lines)-1], "trajgen: "), "\uFFFD")
	return text[:min(len(text), 300)]
}
