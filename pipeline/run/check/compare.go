package check

import (
	"context"
	"errors"
	"path/filepath"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
)

// Compare says what changed from one run to another. It reads both journals once.
func Compare(ctx context.Context, from, to string) (*report.Difference, error) {
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
