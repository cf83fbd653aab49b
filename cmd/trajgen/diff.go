package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

func newDiff(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Show what changed from one run to another, with intervals",
		Long: `Compares two run directories task by task: which tasks came out otherwise, and by how much the success rate, the
reward, turns, tokens, cost and time changed over the tasks that both runs have. Intervals are of the paired differences,
so that hard tasks and easy ones do not blur them; tasks count equally, however many samples they have. Episodes that ended
in an error are not samples. Where the experiments differ is said, too.`,
		Example: `  trajgen diff runs/monday runs/tuesday
  trajgen diff runs/base runs/tuned --json | jq '.changed[] | .task'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, runs []string) error {
			difference, err := compareRuns(cmd.Context(), runs[0], runs[1])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, difference)
			}
			width, color := paper(std.out)
			return difference.WriteTerminal(std.out, width, color)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// compareRuns reads both journals once.
func compareRuns(ctx context.Context, from, to string) (*report.Difference, error) {
	comparison := report.NewComparison()
	was, err := eachEpisode(ctx, from, comparison.AddFrom)
	if err != nil {
		return nil, err
	}
	now, err := eachEpisode(ctx, to, comparison.AddTo)
	if err != nil {
		return nil, err
	}
	return comparison.Finish(runName(from), runName(to), run.Difference(was.Experiment, now.Experiment)), nil
}

// eachEpisode calls a function for each episode of a run.
func eachEpisode(ctx context.Context, dir string, add func(*episode.Episode)) (_ run.Manifest, err error) {
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return m, err
		}
		add(ep)
	}
	return m, nil
}

// runName is the name of a run directory.
func runName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return filepath.Base(abs)
	}
	return dir
}
